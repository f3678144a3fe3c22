//! Scheduled jobs on Redis.
//!
//! A tick is claimed by a script that compares and sets, as `SET NX` would, and knows the run in progress. Times come from the
//! server (`TIME`). A job has three keys with one hash tag, so that they lie on one node of a cluster:
//!
//! | key | content |
//! |---|---|
//! | `seawall:job:{name}` | hash: `last` (the last handled tick), `fence`, `tick` and `until` (the run in progress) |
//! | `seawall:job:{name}:ticks` | sorted set of the ticks in the history |
//! | `seawall:job:{name}:runs` | hash: tick → state, owner, missed, start, end, error, one per line |
//!
//! # What is lost when Redis restarts empty
//! The job begins anew at that moment: ticks from before are not run, also those that were missed. No tick runs twice, except
//! that a run in progress is not known any more, and the next tick may begin beside it. Its fencing token begins anew too: where
//! that matters, keep jobs in SQL.

use std::sync::Arc;
use std::time::Duration;

use redis::{FromRedisValue, Script, cmd};
use seawall::Fault;
use seawall_dist::schedule::{
    JobRun, JobState, JobStore, MissedTicks, RunClaim, RunClaimOutcome, RunEnd, RunState,
};
use seawall_dist::{Millis, StoreError, StoreFuture};

use crate::Connection;

/// The server's clock in milliseconds, and the history.
const SHARED: &str = r"
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local function running()
  local until_ = redis.call('HGET', KEYS[1], 'until')
  return until_ and tonumber(until_) > now
end
local function record(tick, state, owner, missed, started, ended, error)
  redis.call('ZADD', KEYS[2], tick, tick)
  redis.call('HSET', KEYS[3], tick, table.concat({state, owner, missed, started, ended, error}, '\n'))
end
local function fmt(number) return string.format('%.0f', number) end
";

const OPEN: &str = r"
redis.call('HSETNX', KEYS[1], 'last', fmt(now))
local until_ = running() and redis.call('HGET', KEYS[1], 'until') or ''
return {redis.call('HGET', KEYS[1], 'last'), until_, fmt(now)}
";

/// Arguments: after, tick, missed, owner, lease.
const CLAIM: &str = r"
if redis.call('HGET', KEYS[1], 'last') ~= ARGV[1] then return 'taken' end
if running() then return 'running' end
local dead = redis.call('HGET', KEYS[1], 'tick')
if dead then
  local run = redis.call('HGET', KEYS[3], dead)
  if run then
    local owner, missed, started = string.match(run, '^running\n([^\n]*)\n([^\n]*)\n([^\n]*)')
    if owner then record(dead, 'abandoned', owner, missed, started, fmt(now), '') end
  end
end
redis.call('HSET', KEYS[1], 'last', ARGV[2], 'tick', ARGV[2], 'until', fmt(now + ARGV[5]))
record(ARGV[2], 'running', ARGV[4], ARGV[3], fmt(now), '', '')
return fmt(redis.call('HINCRBY', KEYS[1], 'fence', 1))
";

/// Arguments: after, tick, missed.
const PASS: &str = r"
if redis.call('HGET', KEYS[1], 'last') ~= ARGV[1] or running() then return 0 end
redis.call('HSET', KEYS[1], 'last', ARGV[2])
record(ARGV[2], 'missed', '', ARGV[3], fmt(now), fmt(now), '')
return 1
";

/// Arguments: fence, lease.
const RENEW: &str = r"
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] or redis.call('HEXISTS', KEYS[1], 'until') == 0 then return 0 end
redis.call('HSET', KEYS[1], 'until', fmt(now + ARGV[2]))
return 1
";

/// Arguments: fence, tick, state, error, keep, passed tick, passed count.
const FINISH: &str = r"
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] or redis.call('HEXISTS', KEYS[1], 'until') == 0 then return 0 end
redis.call('HDEL', KEYS[1], 'until', 'tick')
local run = redis.call('HGET', KEYS[3], ARGV[2])
local owner, missed, started = string.match(run or '', '^running\n([^\n]*)\n([^\n]*)\n([^\n]*)')
record(ARGV[2], ARGV[3], owner or '', missed or 0, started or fmt(now), fmt(now), ARGV[4])
if ARGV[6] ~= '' then
  redis.call('HSET', KEYS[1], 'last', ARGV[6])
  record(ARGV[6], 'missed', '', ARGV[7], fmt(now), fmt(now), '')
end
local old = redis.call('ZRANGE', KEYS[2], 0, -1 - ARGV[5])
for _, tick in ipairs(old) do
  redis.call('ZREM', KEYS[2], tick)
  redis.call('HDEL', KEYS[3], tick)
end
return 1
";

/// A store of jobs on Redis.
#[derive(Clone, Debug)]
pub struct RedisJobStore {
    connection: Connection,
    scripts: Arc<Scripts>,
}

#[derive(Debug)]
struct Scripts {
    open: Script,
    claim: Script,
    pass: Script,
    renew: Script,
    finish: Script,
}

impl RedisJobStore {
    /// Creates a store on this connection.
    #[must_use]
    pub fn new(connection: Connection) -> Self {
        let script = |code| Script::new(&[SHARED, code].concat());
        let scripts = Scripts {
            open: script(OPEN),
            claim: script(CLAIM),
            pass: script(PASS),
            renew: script(RENEW),
            finish: script(FINISH),
        };
        RedisJobStore { connection, scripts: Arc::new(scripts) }
    }

    async fn invoke<T: FromRedisValue>(
        &self,
        action: &'static str,
        script: &Script,
        job: &str,
        arguments: &[String],
    ) -> Result<T, StoreError> {
        let mut call = script.prepare_invoke();
        for key in keys(job) {
            call.key(key);
        }
        for argument in arguments {
            call.arg(argument);
        }
        self.connection.script(action, &call).await
    }
}

fn keys(job: &str) -> [String; 3] {
    ["", ":ticks", ":runs"].map(|part| format!("seawall:job:{{{job}}}{part}"))
}

impl JobStore for RedisJobStore {
    fn open<'a>(&'a self, job: &'a str) -> StoreFuture<'a, JobState> {
        Box::pin(async move {
            let answer: (i64, String, i64) =
                self.invoke("reading a job", &self.scripts.open, job, &[]).await?;
            let (last, until, now) = answer;
            Ok(JobState {
                last_tick: Millis(last),
                running_until: until.parse().ok().map(Millis),
                now: Millis(now),
            })
        })
    }

    fn claim<'a>(&'a self, claim: &'a RunClaim) -> StoreFuture<'a, RunClaimOutcome> {
        Box::pin(async move {
            const ACTION: &str = "claiming a run of a job";
            let arguments = [
                claim.after.0.to_string(),
                claim.tick.0.to_string(),
                claim.missed.to_string(),
                // A run is kept as lines.
                claim.owner.replace('\n', " "),
                claim.lease.as_millis().to_string(),
            ];
            let answer: String = self.invoke(ACTION, &self.scripts.claim, &claim.job, &arguments).await?;
            match answer.as_str() {
                "taken" => Ok(RunClaimOutcome::Taken),
                "running" => Ok(RunClaimOutcome::Running),
                fence => {
                    let fence =
                        fence.parse().map_err(|error| StoreError::new(ACTION, Fault::system(), error))?;
                    Ok(RunClaimOutcome::Claimed { fence })
                }
            }
        })
    }

    fn pass<'a>(&'a self, missed: &'a MissedTicks) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let arguments =
                [missed.after.0.to_string(), missed.tick.0.to_string(), missed.missed.to_string()];
            self.invoke("passing over ticks of a job", &self.scripts.pass, &missed.job, &arguments).await
        })
    }

    fn renew<'a>(&'a self, job: &'a str, fence: u64, lease: Duration) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let arguments = [fence.to_string(), lease.as_millis().to_string()];
            self.invoke("renewing the lease of a job", &self.scripts.renew, job, &arguments).await
        })
    }

    fn finish<'a>(&'a self, end: &'a RunEnd) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let state = if end.error.is_some() { RunState::Failed } else { RunState::Succeeded };
            let (passed, count) = match end.passed {
                Some((tick, count)) => (tick.0.to_string(), count.to_string()),
                None => (String::new(), String::new()),
            };
            let arguments = [
                end.fence.to_string(),
                end.tick.0.to_string(),
                state.name().to_owned(),
                end.error.clone().unwrap_or_default(),
                end.keep.to_string(),
                passed,
                count,
            ];
            self.invoke("recording the end of a run", &self.scripts.finish, &end.job, &arguments).await
        })
    }

    fn history<'a>(&'a self, job: &'a str, limit: u32) -> StoreFuture<'a, Vec<JobRun>> {
        Box::pin(async move {
            const ACTION: &str = "reading the history of a job";
            let [_, ticks, runs] = keys(job);
            let mut range = cmd("ZREVRANGE");
            range.arg(ticks).arg(0).arg(i64::from(limit) - 1);
            let ticks: Vec<i64> =
                if limit == 0 { Vec::new() } else { self.connection.query(ACTION, &range).await? };
            if ticks.is_empty() {
                return Ok(Vec::new());
            }
            let found: Vec<Option<String>> =
                self.connection.query(ACTION, cmd("HMGET").arg(runs).arg(&ticks)).await?;
            // A run may be trimmed between the two commands.
            let found = ticks.into_iter().zip(found).filter_map(|(tick, text)| Some((tick, text?)));
            let unreadable = || StoreError::new(ACTION, Fault::protocol().permanent(), "a run can't be read");
            found.map(|(tick, text)| run(Millis(tick), &text).ok_or_else(unreadable)).collect()
        })
    }
}

/// Reads a run: state, owner, missed, start, end, and the error, which may have lines of its own.
fn run(tick: Millis, text: &str) -> Option<JobRun> {
    let mut lines = text.splitn(6, '\n');
    let state = RunState::of_name(lines.next()?)?;
    let owner = lines.next()?.to_owned();
    let missed = lines.next()?.parse().ok()?;
    let started_at = Millis(lines.next()?.parse().ok()?);
    let ended_at = lines.next()?.parse().ok().map(Millis);
    let error = lines.next().filter(|_| state == RunState::Failed).map(ToOwned::to_owned);
    Some(JobRun { tick, state, owner, missed, started_at, ended_at, error })
}
