//! A node's timeline as a drawing: a row a moment, its words above its mark, so that nothing covers anything.
//!
//! Places along the time are in percent and sizes in pixels: the drawing fits any width, and its letters keep their
//! size. What it shows is also said in words, beside it.

use jiff::Timestamp;
use maud::{Markup, html};

use crate::{decide::spoken, report::timeline::Moment};

const ROW: usize = 36;
/// Room at both ends, in percent, so that no dot is cut.
const MARGIN: f64 = 4.0;

/// Draws `moments`; `id` is for its title.
pub fn draw(id: &str, node: &str, moments: &[Moment]) -> Markup {
    let (Some(first), Some(last)) =
        (moments.iter().map(|moment| moment.first).min(), moments.iter().map(|moment| moment.last).max())
    else {
        return html! {};
    };
    let place = |when: Timestamp| share(first, last, when) * (100.0 - 2.0 * MARGIN) + MARGIN;
    // Over days the date says more than the second.
    let format = if (last.duration_since(first)).as_hours() < 24 { "%T" } else { "%m-%d %H:%M" };
    let words = moments.iter().map(|moment| format!("{} {}", moment.word, moment.first.strftime("%F %TZ")));
    let words = words.collect::<Vec<_>>().join(", ");
    let height = ROW * moments.len() + 6;
    html! {
        svg.timeline role="img" aria-labelledby=(id) width="100%" height=(height) {
            title id=(id) { "Timeline of " (node) ": " (words) }
            @for (row, moment) in moments.iter().enumerate() {
                @let y = ROW * row + 28;
                @let (from, to) = (place(moment.first), place(moment.last));
                // A label stands where there is room for it.
                @let before = from > 50.0;
                @let state = match moment.word { "NotReady" => "down", "judged" | "reaped" => "end", _ => "between" };
                g class=(state) {
                    line.rail x1="0" x2="100%" y1=(y) y2=(y) {}
                    @if moment.last > moment.first {
                        rect.span x=(percent(from)) y=(y - 4) width=(percent(to - from)) height="8" rx="4" {}
                    }
                    circle.dot cx=(percent(from)) cy=(y) r="6" {}
                    text x=(percent(from)) y=(y - 11) dx=(if before { "6" } else { "-6" })
                        text-anchor=(if before { "end" } else { "start" }) {
                        (moment.first.strftime(format)) " " (moment.word)
                    }
                }
            }
        }
    }
}

/// How long before or after `since` it is.
pub fn offset(since: Option<Timestamp>, when: Timestamp) -> String {
    match since.map(|since| when.duration_since(since)) {
        None => String::new(),
        Some(zero) if zero.as_secs() == 0 => "±0".to_owned(),
        Some(before) if before.is_negative() => format!("−{}", spoken(before.abs())),
        Some(after) => format!("+{}", spoken(after)),
    }
}

fn percent(value: f64) -> String {
    format!("{value:.1}%")
}

fn share(first: Timestamp, last: Timestamp, when: Timestamp) -> f64 {
    let whole = last.duration_since(first).as_secs_f64();
    if whole > 0.0 { when.duration_since(first).as_secs_f64() / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(word: &'static str, first: &str, last: &str) -> Moment {
        let time = |text: &str| format!("2026-01-31T{text}Z").parse().expect("a moment");
        Moment { word, what: String::new(), first: time(first), last: time(last) }
    }

    #[test]
    fn places_are_to_scale_and_labels_stand_where_there_is_room() {
        let moments = [
            moment("NotReady", "01:00:00", "01:00:00"),
            moment("deadline", "01:15:00", "01:30:00"),
            moment("judged", "02:00:00", "02:00:00"),
        ];
        let drawn = draw("t", "ds06", &moments).into_string();
        for part in [
            r#"cx="4.0%""#,
            r#"cx="27.0%""#,
            r#"<rect class="span" x="27.0%" y="60" width="23.0%""#,
            r#"cx="96.0%""#,
            r#"text-anchor="end">02:00:00 judged"#,
            r#"text-anchor="start">01:15:00 deadline"#,
            "Timeline of ds06: NotReady 2026-01-31 01:00:00Z, deadline 2026-01-31 01:15:00Z",
        ] {
            assert!(drawn.contains(part), "{part} is missing in {drawn}");
        }
    }

    #[test]
    fn a_single_moment_and_none_are_drawn_too() {
        let one = draw("t", "ds06", &[moment("judged", "01:00:00", "01:00:00")]).into_string();
        assert!(one.contains(r#"cx="4.0%""#), "{one}");
        assert_eq!(draw("t", "ds06", &[]).into_string(), "");
    }

    #[test]
    fn an_offset_counts_from_the_failure() {
        let time = |text: &str| text.parse::<Timestamp>().expect("a moment");
        let since = time("2026-01-31T01:00:00Z");
        assert_eq!(offset(Some(since), time("2026-01-31T00:59:20Z")), "−40s");
        assert_eq!(offset(Some(since), since), "±0");
        assert_eq!(offset(Some(since), time("2026-01-31T01:05:00Z")), "+5m");
        assert_eq!(offset(None, since), "");
    }
}
