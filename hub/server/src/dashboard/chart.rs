//! Line charts as SVG, with axes.
//!
//! # Why an SVG inside an SVG?
//! Lines are stretched to the width of the page, and labels must not be. The inner drawing has a `viewBox` and is stretched; the
//! outer one has none, so its labels are placed in percent and keep their size. Styles in attributes would do the same, but the
//! content security policy forbids them.

use std::ops::Range;

use minijinja::value::Kwargs;
use minijinja::{Error, ErrorKind, Value};
use serde_json::json;

use super::show::{counted, escaped};

const WIDTH: f64 = 600.0;
/// The height of the plot; the time axis is below it.
const HEIGHT: f64 = 120.0;
/// The heights of the largest value of the axis and of zero.
const TOP: f64 = 8.0;
const ZERO: f64 = 118.0;
/// Labels that are closer to an edge than this, in percent, are aligned with it.
const EDGE: f64 = 6.0;
const LABELS_MAX: i64 = 6;
const MINUTE: i64 = 60_000;
/// The distances that labels of the time axis may have, in minutes.
const STEPS: [i64; 7] = [1, 2, 5, 10, 15, 30, 60];

/// `chart([[1, 2], [3, 4]], at=[…], names=["a", "b"], classes=["good", "bad"], label="…", unit="ms")`: one line for each row of
/// values, all on one scale. `at` has the times of the points in milliseconds since 1970; without it there are no axes.
#[expect(clippy::needless_pass_by_value, reason = "the engine hands values over")]
pub(super) fn chart(lines: Vec<Vec<f64>>, options: Kwargs) -> Result<Value, Error> {
    let texts = |name: &str| Ok::<_, Error>(options.get::<Option<Vec<String>>>(name)?.unwrap_or_default());
    let (classes, names) = (texts("classes")?, texts("names")?);
    let label: String = options.get("label")?;
    let unit: String = options.get::<Option<String>>("unit")?.unwrap_or_default();
    let at: Vec<i64> = options.get::<Option<Vec<i64>>>("at")?.unwrap_or_default();
    options.assert_all_used()?;
    if classes.len() > lines.len() {
        return Err(Error::new(ErrorKind::InvalidOperation, "more classes than lines"));
    }
    let largest = lines.iter().flatten().copied().fold(0.0_f64, f64::max);
    let top = axis_top(largest);
    if at.len() < 2 || lines.iter().any(|line| line.len() != at.len()) {
        let title = escaped(&format!("{label}, maximum {} {unit}", counted(largest)));
        let plot = plot(&lines, &classes, top, None);
        return Ok(Value::from_safe_string(format!(
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\"><title>{title}</title>{plot}</svg>"
        )));
    }
    let id = escaped(&label.to_lowercase().replace(|letter: char| !letter.is_ascii_alphanumeric(), "-"));
    let mut svg = format!(
        "<div class=\"figure\" id=\"{id}\" tabindex=\"0\" role=\"group\" aria-roledescription=\"chart\" aria-label=\"{}\" \
         data-points=\"{}\"><svg class=\"chart scale\" aria-hidden=\"true\">",
        escaped(&summary(&label, &lines, &names, &unit)),
        escaped(&points(&at, &lines, &names, &unit)),
    );
    for (value, y) in [(top, TOP), (top / 2.0, f64::midpoint(TOP, ZERO)), (0.0, ZERO)] {
        let text = escaped(&format!("{} {unit}", short(value)));
        svg.push_str(&format!("<text x=\"100%\" y=\"{}\" text-anchor=\"end\">{text}</text>", y + 4.0));
    }
    svg.push_str(&format!(
        "</svg><svg class=\"chart axes\" aria-hidden=\"true\"><rect class=\"plot\" width=\"100%\" height=\"{HEIGHT}\" rx=\"8\"/><svg \
         width=\"100%\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\">{}</svg>",
        plot(&lines, &classes, top, Some(&at)),
    ));
    for (at, percent, text) in ticks(&at) {
        let anchor = match percent {
            percent if percent < EDGE => "start",
            percent if percent > 100.0 - EDGE => "end",
            _ => "middle",
        };
        svg.push_str(&format!(
            "<line class=\"tick\" x1=\"{percent:.2}%\" x2=\"{percent:.2}%\" y1=\"{ZERO}\" y2=\"124\"/><text class=\"time\" x=\"{percent:.2}%\" \
             y=\"136\" text-anchor=\"{anchor}\" data-at=\"{at}\">{text}</text>"
        ));
    }
    svg.push_str(&format!("<line class=\"guide\" y1=\"0\" y2=\"{ZERO}\" visibility=\"hidden\"/></svg>"));
    svg.push_str("<p class=\"readout\" aria-live=\"polite\" hidden></p></div>");
    Ok(Value::from_safe_string(svg))
}

/// The grid and the lines; without times the points have equal distances.
fn plot(lines: &[Vec<f64>], classes: &[String], top: f64, at: Option<&[i64]>) -> String {
    let mut svg = String::new();
    for y in [TOP, f64::midpoint(TOP, ZERO), ZERO] {
        svg.push_str(&format!("<line class=\"grid\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{y}\" y2=\"{y}\"/>"));
    }
    for (place, line) in lines.iter().enumerate() {
        let class = escaped(classes.get(place).map_or("", String::as_str));
        let x = |index: usize| match at {
            Some(at) => WIDTH * share_of(at, at[index]),
            None => WIDTH / (line.len().max(2) - 1) as f64 * index as f64,
        };
        let point = |index: usize| format!("{:.1},{:.1}", x(index), ZERO - line[index] / top * (ZERO - TOP));
        for run in runs(line) {
            let (first, last) = (run.start, run.end - 1);
            let points = run.map(point).collect::<Vec<_>>().join(" ");
            if place == 0 {
                svg.push_str(&format!(
                    "<polygon class=\"area {class}\" points=\"{:.1},{ZERO} {points} {:.1},{ZERO}\"/>",
                    x(first),
                    x(last)
                ));
            }
            svg.push_str(&format!("<polyline class=\"line {class}\" points=\"{points}\"/>"));
        }
    }
    svg
}

/// The parts of a line between its gaps.
fn runs(line: &[f64]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for index in (0..line.len()).filter(|index| line[*index].is_finite()) {
        match runs.last_mut() {
            Some(run) if run.end == index => run.end += 1,
            _ => runs.push(index..index + 1),
        }
    }
    runs
}

/// The largest value of the axis: a digit times a power of ten, so that half of it is a short number as well.
fn axis_top(largest: f64) -> f64 {
    if largest <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(largest.log10().floor());
    let tops = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0].into_iter().map(|step| step * power);
    tops.into_iter().find(|top| *top >= largest).unwrap_or(10.0 * power)
}

/// A value of the axis: `0.05`, `2.5`, `20`, `1 000`.
fn short(value: f64) -> String {
    if value == 0.0 || value >= 10.0 {
        return counted(value);
    }
    format!("{value:.3}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The position of a time between the first and the last, from 0 to 1.
fn share_of(at: &[i64], time: i64) -> f64 {
    let (first, last) = (at.first().copied().unwrap_or(0), at.last().copied().unwrap_or(0));
    (time - first) as f64 / (last - first).max(1) as f64
}

/// The labels of the time axis: the time, its position in percent, and its text in UTC. They are at whole minutes; a span that
/// has fewer than two of them shows its ends with seconds.
fn ticks(at: &[i64]) -> Vec<(i64, f64, String)> {
    let (Some(&first), Some(&last)) = (at.first(), at.last()) else { return Vec::new() };
    let fits = |step: &&i64| (last - first) / (**step * MINUTE) < LABELS_MAX;
    let step = STEPS.iter().find(fits).unwrap_or(&STEPS[STEPS.len() - 1]) * MINUTE;
    let begin = first.div_euclid(step) * step + if first.rem_euclid(step) == 0 { 0 } else { step };
    let whole: Vec<i64> =
        std::iter::successors(Some(begin), |at| Some(at + step)).take_while(|at| *at <= last).collect();
    let is_short = whole.len() < 2;
    let times = if is_short { vec![first, last] } else { whole };
    times.into_iter().map(|time| (time, 100.0 * share_of(at, time), clock(time, is_short))).collect()
}

/// `18:47`, or `18:47:05`, in UTC.
fn clock(at: i64, with_seconds: bool) -> String {
    let seconds = at.div_euclid(1_000).rem_euclid(86_400);
    let text = format!("{:02}:{:02}", seconds / 3_600, seconds / 60 % 60);
    if with_seconds { format!("{text}:{:02}", seconds % 60) } else { text }
}

/// What a reader of the screen says: the label, and the last value of each line.
fn summary(label: &str, lines: &[Vec<f64>], names: &[String], unit: &str) -> String {
    let last = lines.iter().zip(names).filter_map(|(line, name)| {
        let value = line.last().filter(|value| value.is_finite())?;
        Some(format!("{name} {} {unit}", counted(*value)))
    });
    let last: Vec<String> = last.collect();
    if last.is_empty() { label.to_owned() } else { format!("{label}. Latest: {}", last.join(", ")) }
}

/// The points for the script, which shows their values on hover and on focus. A gap is null.
fn points(at: &[i64], lines: &[Vec<f64>], names: &[String], unit: &str) -> String {
    let rounded = |value: &f64| value.is_finite().then(|| (value * 100.0).round() / 100.0);
    let line = |(place, line): (usize, &Vec<f64>)| {
        let values: Vec<Option<f64>> = line.iter().map(rounded).collect();
        json!({"name": names.get(place), "values": values})
    };
    let lines: Vec<_> = lines.iter().enumerate().map(line).collect();
    json!({"at": at, "unit": unit, "lines": lines}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-2: the time axis has a handful of labels at whole minutes, and a short span shows its ends.
    #[test]
    fn ui_2_the_time_axis_is_labelled_at_whole_minutes() {
        let labels = |first: i64, last: i64| -> Vec<String> {
            ticks(&[first, last]).into_iter().map(|(_, _, text)| text).collect()
        };
        let at = 18 * 60 * MINUTE + 46 * MINUTE + 5_000;
        assert_eq!(labels(at, at + 5 * MINUTE), ["18:47", "18:48", "18:49", "18:50", "18:51"]);
        assert_eq!(labels(at, at + 60 * MINUTE), ["19:00", "19:15", "19:30", "19:45"]);
        assert_eq!(labels(at, at + 20_000), ["18:46:05", "18:46:25"]);
        assert_eq!(labels(23 * 60 * MINUTE + 59 * MINUTE, 24 * 60 * MINUTE), ["23:59", "00:00"]);
        let (_, percent, _) = ticks(&[0, 4 * MINUTE]).remove(1);
        assert!((percent - 25.0).abs() < 0.01, "{percent}");
    }

    /// UI-2: the value axis ends at a round number that no value exceeds.
    #[test]
    fn ui_2_the_value_axis_ends_at_a_round_number() {
        let tops: Vec<f64> = [0.0, 0.75, 1.0, 3.2, 15.0, 87.0, 501.0].into_iter().map(axis_top).collect();
        assert_eq!(tops, [1.0, 0.8, 1.0, 4.0, 20.0, 100.0, 600.0]);
        let texts: Vec<String> = [0.0, 0.05, 2.5, 4.0, 20.0, 1_000.0].into_iter().map(short).collect();
        assert_eq!(texts, ["0", "0.05", "2.5", "4", "20", "1 000"]);
    }

    /// UI-2: a chart has a unit at its values, a gap where there is none, and can have the focus.
    #[test]
    fn ui_2_a_chart_has_axes_with_units_and_its_values() {
        let all = super::super::show::templates();
        let source = "{{ chart([[3, x]], at=[0, 300000], names=['p50'], label='Latency', unit='ms') }}";
        let made = all.render_str(source, minijinja::context! { x => f64::NAN }).unwrap();
        for part in
            ["3 ms</text>", "1.5 ms</text>", "0 ms</text>", ">00:04</text>", "tabindex=\"0\"", "[3.0,null]"]
        {
            assert!(made.contains(part), "{part} is missing: {made}");
        }
        assert_eq!(runs(&[f64::NAN, 1.0, 2.0, f64::NAN, 3.0]), [1..3, 4..5]);
    }
}
