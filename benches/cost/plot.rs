//! Plots time and memory against the number of pods.

use std::fmt::Write;

use crate::Line;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 260.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 40.0;
/// The programs in the plot, with color and name.
const DRAWN: [(&str, &str, &str); 2] = [
    ("pod-reaper", "#1f6feb", "pod-reaper"),
    ("kubectl and jq", "#b35900", "kubectl, jq, a delete each"),
];

type Figure = fn(&Line) -> f64;

/// Draws two panels next to each other. The vertical scales are logarithmic, because the programs differ by orders of magnitude.
pub fn draw(lines: &[Line]) -> String {
    let mut svg = String::new();
    let (width, height) = (2.0 * (LEFT + WIDTH) + 30.0, TOP + HEIGHT + 70.0);
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>"
    );
    let panels: [(&str, Figure); 2] = [
        ("seconds", |line| line.cost.seconds),
        ("peak memory, MiB", |line| line.cost.peak_kib / 1024.0),
    ];
    for (at, (title, figure)) in panels.into_iter().enumerate() {
        panel(
            &mut svg,
            lines,
            LEFT + at as f64 * (LEFT + WIDTH),
            title,
            figure,
        );
    }
    for (at, (_, colour, name)) in DRAWN.into_iter().enumerate() {
        let (x, y) = (LEFT + at as f64 * 160.0, TOP + HEIGHT + 55.0);
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{}\" width=\"14\" height=\"4\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"{y}\">{name}</text>",
            y - 6.0,
            x + 20.0
        );
    }
    svg += "</svg>\n";
    svg
}

fn panel(svg: &mut String, lines: &[Line], left: f64, title: &str, figure: Figure) {
    // All points have the same number of nodes, so that only the number of pods changes.
    let nodes = lines.first().map_or(0, |line| line.nodes);
    let drawn = |who: &str| {
        lines
            .iter()
            .filter(move |line| line.nodes == nodes && line.who == who)
            .collect::<Vec<_>>()
    };
    let all = DRAWN
        .iter()
        .flat_map(|(who, ..)| drawn(who))
        .collect::<Vec<_>>();
    let most = all.iter().map(|line| line.pods).max().unwrap_or(1).max(1) as f64;
    let lowest = all
        .iter()
        .map(|line| figure(line))
        .fold(f64::MAX, f64::min)
        .log10()
        .floor();
    let highest = all
        .iter()
        .map(|line| figure(line))
        .fold(f64::MIN, f64::max)
        .log10()
        .ceil()
        .max(lowest + 1.0);
    let x = |pods: f64| left + pods / most * WIDTH;
    let y = |value: f64| TOP + HEIGHT * (highest - value.log10()) / (highest - lowest);
    let _ = writeln!(
        svg,
        "<text x=\"{left}\" y=\"{}\" font-weight=\"bold\">{title}</text>",
        TOP - 16.0
    );
    let mut power = lowest;
    while power <= highest {
        let (at, value) = (y(10_f64.powf(power)), 10_f64.powf(power));
        let _ = writeln!(
            svg,
            "<line x1=\"{left}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
            left + WIDTH,
            left - 6.0,
            at + 4.0
        );
        power += 1.0;
    }
    for (who, colour, _) in DRAWN {
        let points = drawn(who);
        let path = points
            .iter()
            .map(|line| format!("{:.1},{:.1}", x(line.pods as f64), y(figure(line))));
        let path = path.collect::<Vec<_>>().join(" ");
        let _ = writeln!(
            svg,
            "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"
        );
        for line in points {
            let (x, y) = (x(line.pods as f64), y(figure(line)));
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
            );
        }
    }
    for pods in [0.0, most / 2.0, most] {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{pods}</text>",
            x(pods),
            TOP + HEIGHT + 18.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">pods, on {nodes} nodes</text>",
        left + WIDTH / 2.0,
        TOP + HEIGHT + 34.0
    );
}
