//! One time axis for all nodes, and a row a node below it: what happened to it and its pods, at the same places.
//!
//! Places along the time are in percent and sizes in pixels: the drawing fits any width, and its letters keep their
//! size. A mark is told by its shape, not by its colour alone (`marks.html`, the legend); each row also says it in words.

use itertools::Itertools as _;
use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};

use crate::report::timeline::{Moment, NOT_READY};

/// Room at both ends, in percent, so that no mark is cut.
const MARGIN: f64 = 2.0;
/// A failure is looked at within a day. Where something happened within one, what is older would squeeze it.
const NEAR: SignedDuration = SignedDuration::from_hours(24);
/// How many parts the axis has.
const PARTS: i32 = 4;

/// The stretch of time that all rows share.
pub struct Axis {
    first: Timestamp,
    last: Timestamp,
    judged_at: Timestamp,
}

impl Axis {
    /// From the first to the last of `moments`, where there are any; of those less than a day from `judged_at`, if such are among
    /// them. What is not on the axis stands at its end.
    pub fn over<'a>(
        moments: impl Iterator<Item = &'a Moment>,
        judged_at: Timestamp,
    ) -> Option<Self> {
        let times = moments
            .flat_map(|moment| [moment.first, moment.last])
            .collect_vec();
        let near =
            |time: &Timestamp| *time != judged_at && time.duration_since(judged_at).abs() < NEAR;
        let recent = times.iter().copied().filter(near).collect_vec();
        let shown = if recent.is_empty() { &times } else { &recent };
        Some(Self {
            first: judged_at.min(*shown.iter().min()?),
            last: judged_at.max(*shown.iter().max()?),
            judged_at,
        })
    }

    /// The lines between its parts, with their times.
    pub fn draw(&self) -> Markup {
        let whole = self.last.duration_since(self.first);
        let format = if whole < NEAR { "%H:%M" } else { "%m-%d" };
        let ticks = (0..=PARTS)
            .map(|part| self.first + whole * part / PARTS)
            .dedup()
            .map(|tick| (self.place(tick), tick))
            .collect_vec();
        html! {
            svg.axis aria-hidden="true" {
                g #ticks { @for (x, _) in &ticks { line x1=(x) x2=(x) y1="0" y2="100%" {} } }
                @for (x, tick) in &ticks { text x=(x) y="15" { (tick.strftime(format)) } }
            }
        }
    }

    /// A row; of a node its time without being Ready, up to the end.
    pub fn row(&self, moments: &[Moment]) -> Markup {
        let since = moments.iter().find(|moment| moment.word == NOT_READY);
        html! {
            svg.timeline aria-hidden="true" {
                use href="#ticks" {}
                @if let Some(since) = since { (self.stretch("down", since.first, self.judged_at)) }
                @for moment in moments { (self.stretch("several", moment.first, moment.last.min(self.judged_at))) }
                @for Moment { word, first, .. } in moments {
                    use href=(format!("#mark-{word}")) x=(self.place(*first)) y="12" {}
                }
            }
        }
    }

    fn stretch(&self, class: &str, from: Timestamp, to: Timestamp) -> Markup {
        let width = self.share(to) - self.share(from);
        html! { @if width > 0.0 { rect class=(class) x=(self.place(from)) width=(format!("{width:.1}%")) {} } }
    }

    fn place(&self, when: Timestamp) -> String {
        format!("{:.1}%", self.share(when))
    }

    fn share(&self, when: Timestamp) -> f64 {
        let whole = self.last.duration_since(self.first).as_secs_f64();
        let share = if whole > 0.0 {
            when.duration_since(self.first).as_secs_f64() / whole
        } else {
            1.0
        };
        MARGIN + (100.0 - 2.0 * MARGIN) * share.clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(word: &'static str, first: &str, last: &str) -> Moment {
        Moment {
            word,
            what: String::new(),
            first: time(first),
            last: time(last),
        }
    }

    fn over<'a>(moments: impl IntoIterator<Item = &'a Moment>, judged_at: Timestamp) -> Axis {
        Axis::over(moments.into_iter(), judged_at).expect("moments")
    }

    fn time(text: &str) -> Timestamp {
        format!("2026-01-{text}Z").parse().expect("a moment")
    }

    #[test]
    fn all_rows_share_one_scale() {
        let first = [
            moment("NotReady", "31T01:00:00", "31T01:00:00"),
            moment("deadline", "31T01:15:00", "31T01:30:00"),
            moment("judged", "31T02:00:00", "31T02:00:00"),
        ];
        let other = [moment("heartbeat", "31T01:30:00", "31T01:30:00")];
        let axis = over(first.iter().chain(&other), time("31T02:00:00"));
        let drawn = axis.draw().into_string() + &axis.row(&first).into_string();
        for part in [
            r#"<text x="26.0%" y="15">01:15</text><text x="50.0%" y="15">01:30</text>"#,
            r##"<use href="#mark-NotReady" x="2.0%""##,
            r##"<use href="#mark-deadline" x="26.0%""##,
            r#"<rect class="several" x="26.0%" width="24.0%""#,
            r#"<rect class="down" x="2.0%" width="96.0%""#,
            r##"<use href="#mark-judged" x="98.0%""##,
        ] {
            assert!(drawn.contains(part), "{part} is missing in {drawn}");
        }
        let row = axis.row(&other).into_string();
        assert!(
            row.contains(r##"<use href="#mark-heartbeat" x="50.0%""##),
            "{row}"
        );
    }

    #[test]
    fn what_is_much_older_does_not_squeeze_the_last_day() {
        let old = moment("NotReady", "01T00:00:00", "01T00:00:00");
        let new = moment("NotReady", "31T01:00:00", "31T01:00:00");
        let judged_at = time("31T02:00:00");
        let place = |axis: &Axis, moment: &Moment| axis.place(moment.first);
        let axis = over([&old, &new], judged_at);
        assert_eq!(
            [
                place(&axis, &old),
                place(&axis, &new),
                axis.place(judged_at)
            ],
            ["2.0%", "2.0%", "98.0%"]
        );
        let alone = over([&old], judged_at);
        assert_eq!(
            [place(&alone, &old), alone.place(judged_at)],
            ["2.0%", "98.0%"]
        );
        assert!(
            alone.draw().into_string().contains(">01-16</text>"),
            "{}",
            alone.draw().into_string()
        );
    }

    #[test]
    fn a_single_moment_is_drawn_too() {
        let judged = moment("judged", "31T01:00:00", "31T01:00:00");
        let axis = over([&judged], judged.first);
        assert!(axis.row(&[judged]).into_string().contains(r#"x="98.0%""#));
        axis.draw();
    }
}
