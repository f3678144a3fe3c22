//! What is registered.

use seawall_hub_core::domain::alert::{AlertRule, Channel};
use seawall_hub_core::domain::key::Key;
use seawall_hub_core::domain::rule::Rule;
use seawall_hub_core::domain::service::Service;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::source::Source;
use seawall_hub_core::port::store::SecretRotation;

use super::applier::{ApplyError, UnitApplier, missing};

impl UnitApplier<'_> {
    pub(super) async fn put_service(&mut self, _new: &Service) -> Result<(), ApplyError> {
        Err(missing())
    }

    pub(super) async fn delete_service(&mut self, _name: &Slug, _version: u64) -> Result<(), ApplyError> {
        Err(missing())
    }

    pub(super) async fn put_rule(&mut self, _new: &Rule) -> Result<(), ApplyError> {
        Err(missing())
    }

    pub(super) async fn delete_rule(&mut self, _name: &Slug, _version: u64) -> Result<(), ApplyError> {
        Err(missing())
    }

    pub(super) async fn put_source(&mut self, _new: &Source) -> Result<(), ApplyError> {
        Err(missing())
    }

    pub(super) async fn delete_source(&mut self, _name: &Slug, _version: u64) -> Result<(), ApplyError> {
        Err(missing())
    }

    pub(super) async fn put_alert_rule(&mut self, _new: &AlertRule) -> Result<(), ApplyError> {
        Err(missing())
    }

    pub(super) async fn delete_alert_rule(&mut self, _name: &Slug, _version: u64) -> Result<(), ApplyError> {
        Err(missing())
    }

    pub(super) async fn put_channel(&mut self, _new: &Channel) -> Result<(), ApplyError> {
        Err(missing())
    }

    pub(super) async fn delete_channel(&mut self, _name: &Slug, _version: u64) -> Result<(), ApplyError> {
        Err(missing())
    }

    pub(super) async fn put_key(&mut self, _new: &Key) -> Result<(), ApplyError> {
        Err(missing())
    }

    pub(super) async fn reseal(&mut self, _rotation: &SecretRotation) -> Result<(), ApplyError> {
        Err(missing())
    }
}
