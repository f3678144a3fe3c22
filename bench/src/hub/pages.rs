//! The dashboard of a large hub: how long a page takes, and what many who look at it cost.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::Bench;
use super::curves;
use super::desk;
use super::event;
use super::lab::Lab;
use super::sink::{Manner, Sink};
use super::times::Spread;

pub const PAGES: &str = "a page of the dashboard of a large hub (times: one request)";
pub const LOOKING: &str = "dashboards that are open (CPU: of a second, in %)";

/// Each page is asked for so often.
const TIMES: usize = 100;
/// So many look at once.
const OPEN: usize = 50;

pub async fn pages(bench: &mut Bench<'_>) -> Result<(), String> {
    if !bench.options.wants(PAGES, "") && !bench.options.wants(LOOKING, "") {
        return Ok(());
    }
    let (services, letters, deliveries) =
        if bench.options.quick { (100, 5_000, 20_000) } else { (1_000, 100_000, 1_000_000) };
    let mut lab = Lab::new(bench.options).await?;
    for each in 0..services {
        lab.api.service(&format!("peer-{each}"), Sink::nobody().await?, true).await?;
    }
    let at = lab.peer(Manner::Refuses).await?;
    lab.api.service_with_calls("crm", at, 100).await?;
    lab.api.rule("to-crm", &event::kind(desk::DEAD_GROUP), "crm").await?;
    let began = Instant::now();
    desk::fill(&mut lab, letters).await?;
    curves::fill(&mut lab, "peer-0", deliveries).await?;
    eprintln!(
        "  {services} services, {letters} dead letters, {deliveries} deliveries that wait, in {:.0} s",
        began.elapsed().as_secs_f64()
    );
    let cookie = lab.api.log_in().await?;
    for path in [
        "/",
        "/services",
        "/services/crm",
        "/rules",
        "/rules/to-crm",
        "/events",
        "/deliveries",
        "/deadLetters",
        "/deadLetters/list",
        "/deadLetters/list?q=currency",
        "/operations",
        "/alerts",
        "/settings",
        "/audit",
    ] {
        if !bench.options.wants(PAGES, path) {
            continue;
        }
        let mut times = Vec::with_capacity(TIMES);
        let (before, began, mut bytes) = (lab.before(), lab.times.now(), 0);
        for _ in 0..TIMES {
            let asked = Instant::now();
            bytes = lab.api.page(path, &cookie).await?;
            times.push(asked.elapsed().as_secs_f64() * 1e3);
        }
        let took = lab.times.now() - began;
        let row = lab.row(PAGES, path.into(), before, (TIMES as u64, took), &Spread::new(times));
        bench.add(row.and(Some(format!("{bytes} bytes"))));
    }
    for path in ["/", "/deadLetters"] {
        looking(bench, &mut lab, path, &cookie).await?;
    }
    Ok(())
}

/// Many look at the same page, and nothing else happens.
async fn looking(bench: &mut Bench<'_>, lab: &mut Lab, path: &str, cookie: &str) -> Result<(), String> {
    let name = format!("{OPEN} at {path}");
    if !bench.options.wants(LOOKING, &name) {
        return Ok(());
    }
    let idle = used(lab).await;
    let mut open = JoinSet::new();
    for _ in 0..OPEN {
        open.spawn_local(look(lab.hub.address, path.to_owned(), cookie.to_owned()));
    }
    sleep(Duration::from_secs(2)).await;
    let busy = used(lab).await;
    if let Some(ended) = open.try_join_next() {
        return Err(format!("somebody who looked at {path} was sent away: {ended:?}"));
    }
    let before = lab.before();
    let mut row = lab.row(LOOKING, name, before, (OPEN as u64, 1), &Spread::new(Vec::new()));
    (row.rate, row.driver_us, row.cpu_us) = (None, None, Some(busy));
    bench.add(row.and(Some(format!("{idle:.2} % while nobody looks"))));
    Ok(())
}

/// How much of a core the hub uses, in percent.
async fn used(lab: &Lab) -> f64 {
    let time = Duration::from_secs(10);
    let before = lab.hub.cpu();
    sleep(time).await;
    (lab.hub.cpu() - before).as_secs_f64() / time.as_secs_f64() * 100.0
}

async fn look(address: SocketAddr, path: String, cookie: String) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /live?page={path} HTTP/1.1\r\nhost: hub\r\ncookie: {cookie}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut buffer = vec![0; 64 * 1024];
    while stream.read(&mut buffer).await? > 0 {}
    Ok(())
}
