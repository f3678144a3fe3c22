//! Lists, whole or page by page.

use crate::{
    Alert, AlertPage, AuditEntry, AuditPage, DeadLetter, DeadLetterGroup, DeadLetterGroupPage,
    DeadLetterPage, Delivery, DeliveryPage, Event, EventPage, Operation, OperationPage, ServiceStatus,
    ServiceStatusPage,
};

/// A list as the hub returns it: whole, or one page of it.
pub trait Listing {
    /// What is listed.
    type Item;

    /// The field that holds the items; `None` if the list is the whole value.
    const FIELD: Option<&'static str>;

    /// The items of this page.
    fn items(&self) -> &[Self::Item];

    /// The `page_token` of the next page; empty if this is the last. A page may be short without being the last.
    fn next_page_token(&self) -> &str;

    /// The number of items that a search has not considered, because they are not indexed yet.
    fn unindexed(&self) -> u64 {
        0
    }
}

impl<T> Listing for Vec<T> {
    type Item = T;

    const FIELD: Option<&'static str> = None;

    fn items(&self) -> &[T] {
        self
    }

    fn next_page_token(&self) -> &str {
        ""
    }
}

macro_rules! pages {
    ($($page:ident { $field:ident: $item:ident } = $name:literal;)+) => {$(
        impl Listing for $page {
            type Item = $item;

            const FIELD: Option<&'static str> = Some($name);

            fn items(&self) -> &[$item] {
                &self.$field
            }

            fn next_page_token(&self) -> &str {
                &self.next_page_token
            }
        }
    )+};
}

pages! {
    AlertPage { alerts: Alert } = "alerts";
    AuditPage { entries: AuditEntry } = "entries";
    DeadLetterGroupPage { dead_letter_groups: DeadLetterGroup } = "deadLetterGroups";
    DeliveryPage { deliveries: Delivery } = "deliveries";
    EventPage { events: Event } = "events";
    OperationPage { operations: Operation } = "operations";
    ServiceStatusPage { services: ServiceStatus } = "services";
}

impl Listing for DeadLetterPage {
    type Item = DeadLetter;

    const FIELD: Option<&'static str> = Some("deadLetters");

    fn items(&self) -> &[DeadLetter] {
        &self.dead_letters
    }

    fn next_page_token(&self) -> &str {
        &self.next_page_token
    }

    fn unindexed(&self) -> u64 {
        self.search.as_ref().map_or(0, |search| search.unindexed)
    }
}
