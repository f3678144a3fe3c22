use std::sync::Arc;
use std::time::Duration;

use redis::cmd;
use seawall_dist::schedule::{Job, JobStore, Jobs, RunState, Schedule};
use seawall_redis::Connection;
use seawall_redis::job::RedisJobStore;
use seawall_testkit::conformance::{self, job_processes};
use seawall_testkit::servers::{Redis, worker_settings};
use tokio::runtime::Runtime;

fn store(url: &str) -> Arc<dyn JobStore> {
    Arc::new(RedisJobStore::new(Connection::new(url).unwrap()))
}

/// CRD-6: the store on Redis keeps the contract of every store of jobs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_6_redis_is_a_job_store() {
    let redis = Redis::start().unwrap();
    conformance::job(store(&redis.url())).await;
}

#[test]
fn job_worker() {
    let Some(settings) = worker_settings() else { return };
    Runtime::new().unwrap().block_on(job_processes::run_worker(store(&settings["ADDRESS"]), &settings));
}

/// CRD-6: a job fires once per tick across three processes that are killed, for each missed-run policy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_6_a_job_fires_once_per_tick_across_processes_on_redis() {
    let ticks = if std::env::var_os("SEAWALL_LONG").is_some() { 200 } else { 40 };
    let (redis, folder) = (Redis::start().unwrap(), tempfile::tempdir().unwrap());
    let (url, worker) = (redis.url(), "job::job_worker");
    let report = job_processes::fires_once_per_tick(store(&url), worker, &url, folder.path(), ticks).await;
    println!("Redis: {report}");
}

/// CRD-6: while Redis is away a job does not run; when Redis comes back empty the job begins anew and goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_6_a_job_goes_on_after_redis_was_away() {
    let redis = Redis::start().unwrap();
    let store = store(&redis.url());
    let schedule = Schedule::every(Duration::from_millis(20)).unwrap();
    let job = Job::new("report", schedule, |_| async { Ok::<_, std::io::Error>(()) });
    let jobs = Jobs::builder(store.clone()).job(job).build().unwrap();
    let runs = async |jobs: &Jobs| {
        let history = jobs.history("report", 10).await.unwrap_or_default();
        history.iter().filter(|run| run.state == RunState::Succeeded).count()
    };
    let stop = tokio::sync::Notify::new();
    tokio::join!(jobs.run(stop.notified()), async {
        for round in 0..3 {
            while runs(&jobs).await < 3 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            match round {
                0 => {
                    redis.control().kill().unwrap();
                    redis.control().start().unwrap();
                }
                1 => {
                    redis.control().pause().unwrap();
                    tokio::time::sleep(Duration::from_millis(700)).await;
                    redis.control().resume().unwrap();
                    let _ =
                        Connection::new(&redis.url()).unwrap().query::<()>("a flush", &cmd("FLUSHALL")).await;
                }
                _ => {}
            }
        }
        stop.notify_one();
    });
}
