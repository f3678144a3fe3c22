//! Opening, running and stopping a hub.

use std::sync::Arc;
use std::time::Duration;

use seawall::{Clock, Registry};

use super::alerts::Alerts;
use super::bridge::telemetry::AcceptTelemetry;
use super::context::Context;
use super::dead_letters::OperationRunner;
use super::handles::{
    AlertHandle, BridgeHandle, DeadLetterHandle, GatewayHandle, Handles, HubRuntime, OpsHandle,
    RegistryHandle,
};
use super::observe::Observer;
use super::shared::{ChangeError, Core, KeyIndex, by_name};
use super::{DeliveryDispatcher, EventAcceptor, RenderPool, RuleSet, wall_time};
use crate::domain::time::Millis;
use crate::port::store::{Change, RegistrySnapshot, Store, StoreError, UnitOfWork, WritePriority};
use crate::port::transport::Transport;
use crate::sync::RwLock;

/// How often frequent things are logged in one line.
const REPORT_EVERY: Duration = Duration::from_secs(1);

impl<S: Store + Clone, T: Transport> Handles<S, T> {
    /// Opens a hub over a store, and continues with what is in it.
    pub async fn open(
        store: S,
        transport: T,
        registry: Registry,
        clock: Clock,
        observer: Arc<dyn Observer>,
    ) -> Result<Self, ChangeError> {
        let RegistrySnapshot { services, rules, sources, circuits, keys, alert_rules, channels } =
            store.registered().await?;
        let live = store.live_incidents().await?;
        let mut accept = EventAcceptor::new(store.clone(), RuleSet::default());
        if observer.times_rules() {
            accept.time_rules(clock.clone());
        }
        let mut known_keys = KeyIndex::default();
        keys.into_iter().for_each(|key| known_keys.put(key));
        let core = Arc::new(Core {
            accept,
            deliver: DeliveryDispatcher::new(store.clone(), transport, registry.clone(), clock.clone()),
            alerts: Alerts::new(alert_rules, channels, live),
            evaluations: RenderPool::for_evaluations(),
            telemetry: AcceptTelemetry::new(clock.clone()),
            retention: RwLock::default(),
            backlog: tokio::sync::Mutex::default(),
            operations: OperationRunner::default(),
            store,
            registry,
            observer,
            began: wall_time(&clock),
            clock,
            services: RwLock::default(),
            rules: RwLock::new(by_name(rules, |rule| &rule.name)),
            sources: RwLock::new(by_name(sources, |source| &source.name)),
            keys: RwLock::new(known_keys),
            changing: tokio::sync::Mutex::new(()),
        });
        let registry = RegistryHandle::over(&core);
        for service in services {
            registry.use_service(service)?;
        }
        for circuit in circuits {
            core.deliver.restore(&circuit);
        }
        registry.use_rules();
        registry.release_enabled(&core.own_context()).await?;
        Ok(Handles {
            registry,
            bridge: BridgeHandle::over(&core),
            gateway: GatewayHandle::over(&core),
            dead_letters: DeadLetterHandle::over(&core),
            alerts: AlertHandle::over(&core),
            ops: OpsHandle::over(&core),
            runtime: HubRuntime::over(&core),
        })
    }
}

impl<S: Store + Clone, T: Transport> HubRuntime<S, T> {
    /// Runs until the store is broken.
    pub async fn run(&self) -> StoreError {
        let registry = RegistryHandle::over(&self.core);
        let (ops, dead_letters) = (OpsHandle::over(&self.core), DeadLetterHandle::over(&self.core));
        let pausing = async {
            loop {
                let (rule, service) = self.core.deliver.gone().await;
                registry.pause_gone(&rule, &service).await;
            }
        };
        let reporting = async {
            loop {
                tokio::time::sleep(REPORT_EVERY).await;
                self.report();
            }
        };
        tokio::select! {
            error = self.core.deliver.run() => error,
            () = reporting => unreachable!("it has no end"),
            () = pausing => unreachable!("it has no end"),
            () = ops.retain() => unreachable!("it has no end"),
            () = dead_letters.run_operations() => unreachable!("it has no end"),
            () = dead_letters.index_letters() => unreachable!("it has no end"),
        }
    }

    /// Logs what happened since the last call, in one line for each service.
    pub fn report(&self) {
        self.core.telemetry.report();
        self.core.deliver.report();
    }

    /// Stops starting attempts, and returns when those in progress have ended.
    pub async fn finish(&self) {
        self.core.deliver.finish().await;
    }

    /// Records in the store that the process stopped in an orderly way, so that its claimed deliveries are no suspects.
    pub async fn record_stop(&self) -> Result<(), StoreError> {
        let stop = UnitOfWork::of(Change::RecordStop);
        self.core.store.commit(WritePriority::Outcomes, stop).await.map(drop)
    }

    /// Returns the wall time.
    #[must_use]
    pub fn now(&self) -> Millis {
        self.core.now()
    }

    /// Returns the context of a change that the hub makes by itself now.
    #[must_use]
    pub fn own_context(&self) -> Context {
        self.core.own_context()
    }
}
