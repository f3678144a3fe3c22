//! Queries that are put together.

use tokio_postgres::types::ToSql;

/// The conditions of a query with their values. What comes from outside is a value, and never in the text.
#[derive(Default)]
pub(super) struct Conditions {
    texts: Vec<String>,
    values: Vec<Box<dyn ToSql + Sync + Send>>,
}

impl Conditions {
    /// Creates an empty list behind the values that a query has anyway. They are set before it runs.
    pub(super) fn behind(reserved: usize) -> Self {
        let mut conditions = Conditions::default();
        for _ in 0..reserved {
            conditions.add(0_i64);
        }
        conditions
    }

    /// Adds a value, and returns its placeholder.
    pub(super) fn add(&mut self, value: impl ToSql + Sync + Send + 'static) -> String {
        self.values.push(Box::new(value));
        format!("${}", self.values.len())
    }

    /// Sets the reserved values.
    pub(super) fn set(&mut self, reserved: &[i64]) {
        for (value, new) in self.values.iter_mut().zip(reserved) {
            *value = Box::new(*new);
        }
    }

    /// Adds a condition on a value, if there is one. `?` in the condition stands for the value.
    pub(super) fn ask(&mut self, condition: &str, value: Option<impl ToSql + Sync + Send + 'static>) {
        if let Some(value) = value {
            let placeholder = self.add(value);
            self.texts.push(condition.replace('?', &placeholder));
        }
    }

    /// Adds a condition that has no value.
    pub(super) fn push(&mut self, condition: impl Into<String>) {
        self.texts.push(condition.into());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Returns the end of a `WHERE` clause.
    pub(super) fn sql(&self) -> String {
        self.texts.iter().map(|condition| format!(" AND {condition}")).collect()
    }

    pub(super) fn params(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect()
    }
}
