use super::*;

fn totals(sends: u64, errors: u64) -> Totals {
    let mut totals = Totals::default();
    (totals.sends, totals.delivered, totals.errors[1]) = (sends, sends - errors, errors);
    totals
}

fn history() -> History {
    History::new(&MetricStore::default(), Millis(0))
}

fn seen(of: &[(&str, u64, u64)]) -> HashMap<String, Totals> {
    of.iter().map(|(name, sends, errors)| ((*name).to_owned(), totals(*sends, *errors))).collect()
}

/// UI-2: a point has what came since the one before, of each service and of all together.
#[test]
fn ui_2_points_are_differences() {
    let history = history();
    history.look(seen(&[("a", 10, 1), ("b", 5, 0)]), 3, Millis(5_000));
    history.look(seen(&[("a", 10, 1), ("b", 7, 2)]), 3, Millis(10_000));
    let sends = |service: Option<&str>| -> Vec<(u32, u32, Option<u32>)> {
        let points = history.points(service, HistoryRange::Minutes);
        points.iter().map(|point| (point.sends, point.errors(), point.events)).collect()
    };
    assert_eq!(sends(Some("a")), [(10, 1, None), (0, 0, None)]);
    assert_eq!(sends(Some("b")), [(5, 0, None), (2, 2, None)]);
    assert_eq!(sends(None), [(15, 1, Some(3)), (2, 2, Some(0))]);
    assert_eq!(sends(Some("nobody")), [(0, 0, None), (0, 0, None)]);
    let times: Vec<i64> =
        history.points(None, HistoryRange::Minutes).iter().map(|point| point.at.0).collect();
    assert_eq!(times, [5_000, 10_000]);
}

/// UI-2: five minutes are kept in points of five seconds, and an hour in points of half a minute; nothing more.
#[test]
fn ui_2_what_is_older_makes_room() {
    let history = history();
    for look in 1..=1_000_u64 {
        history.look(seen(&[("a", look * 2, 0)]), look, Millis(i64::try_from(look).unwrap() * 5_000));
    }
    let fine = history.points(Some("a"), HistoryRange::Minutes);
    assert_eq!((fine.len(), fine[0].at, fine[59].at), (60, Millis(941 * 5_000), Millis(1_000 * 5_000)));
    assert!(fine.iter().all(|point| point.sends == 2));
    let coarse = history.points(None, HistoryRange::Hour);
    // The last whole half minute ended with look 996, and another one has begun.
    assert_eq!((coarse.len(), coarse[119].at, coarse[119].seconds), (121, Millis(996 * 5_000), 30));
    assert!(coarse[..120].iter().all(|point| point.sends == 12 && point.events == Some(6)));
    let begun = &coarse[120];
    assert_eq!((begun.at, begun.seconds, begun.sends, begun.events), (Millis(1_000 * 5_000), 20, 8, Some(4)));
}

/// UI-1: what nothing has happened to costs no points; a service that was counted before the hub began does not jump.
#[test]
fn ui_1_idle_services_cost_little() {
    let history = history();
    let idle: Vec<String> = (0..1_000).map(|number| format!("idle-{number}")).collect();
    let all: Vec<(&str, u64, u64)> = idle.iter().map(|name| (&**name, 0, 0)).collect();
    history.look(seen(&all), 0, Millis(5_000));
    assert!(history.lock().services.values().all(|track| track.points.is_none()));
    assert!(
        size_of::<Points>() <= 7_200 && size_of::<ServiceSeries>() < 600,
        "{}",
        size_of::<ServiceSeries>()
    );
}

/// UI-2. Trap "a count that is shown in two places is the same number": the last hour never has less than the last five minutes.
#[test]
fn ui_2_the_hour_has_all_that_the_minutes_have() {
    let history = history();
    for look in 1..=1_000_u64 {
        history.look(seen(&[("a", look * 3, look)]), look, Millis(i64::try_from(look).unwrap() * 5_000));
        for service in [None, Some("a")] {
            let sum = |span| -> (u32, u32) {
                let points = history.points(service, span);
                (points.iter().map(|point| point.sends).sum(), points.iter().map(Point::errors).sum())
            };
            let (minutes, hour) = (sum(HistoryRange::Minutes), sum(HistoryRange::Hour));
            assert!(hour >= minutes, "after {look} looks: {hour:?} in an hour, {minutes:?} in five minutes");
        }
    }
}
