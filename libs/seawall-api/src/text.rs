//! Texts with a meaning, each a type of its own.

/// Defines types that are a string on the wire, with the `format` by which the hub chooses the parser.
macro_rules! texts {
    ($($(#[doc = $doc:literal])+ $name:ident: $schema:tt;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Makes it from a text. The hub checks the text, not this type.
            #[must_use]
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The text, owned.
            #[must_use]
            pub fn into_string(self) -> String {
                self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }

        crate::word::inline_schema! { $name: $schema }
    )+};
}

texts! {
    /// The name of something that is registered: lower-case letters, digits and inner hyphens.
    Name: {"type": "string", "format": "slug", "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", "description": "Lower-case letters, digits and inner hyphens"};
    /// The base URL of a service, such as `https://billing.example/api`.
    BaseUrl: {"type": "string", "format": "base-url", "pattern": "^https?://[^?#]+$", "description": "Base URL without a query"};
    /// A duration with units from ns to d, such as `30s`, `1m30s` or `1.5h`.
    DurationText: {"type": "string", "format": "duration-text", "description": "Duration with units from ns to d: `30s`, `1m30s`, `1.5h`"};
    /// A time by RFC 3339, such as `2026-11-15T16:16:23.497Z`.
    Timestamp: {"type": "string", "format": "date-time"};
    /// The type of an event: words separated by dots, such as `order.created`.
    EventType: {"type": "string", "format": "event-type", "pattern": "^[!-)+,\\-/-~]+(\\.[!-)+,\\-/-~]+)*$", "maxLength": 255, "description": "Words separated by dots: visible ASCII characters without asterisks"};
    /// A pattern of event types: a type, `order.*` for all types below `order`, or `*` for all.
    EventPattern: {"type": "string", "format": "event-pattern", "pattern": "^(\\*|[!-)+,\\-/-~]+(\\.[!-)+,\\-/-~]+)*(\\.\\*)?)$", "maxLength": 257, "description": "Event type, `order.*` for all types below `order`, or `*` for all"};
    /// The id of an event: 1 to 200 visible ASCII characters.
    EventId: {"type": "string", "format": "event-id", "pattern": "^[!-~]{1,200}$", "description": "Visible ASCII characters"};
    /// The id of a delivery, which is also the id of its dead letter.
    DeliveryId: {"type": "string", "format": "delivery-id", "pattern": "^dlv_[0-9a-f]{32}$"};
    /// The id of a bulk operation.
    OperationId: {"type": "string", "format": "operation-id", "pattern": "^op_[0-9a-f]{32}$"};
    /// The fingerprint of a group of dead letters.
    Fingerprint: {"type": "string", "format": "fingerprint", "pattern": "^grp_[0-9a-f]{16}$"};
    /// A condition over the fields of an event, such as `data.total > 100`.
    Filter: {"type": "string", "format": "filter"};
    /// A text with expressions, such as `/invoices/{{ data.id }}`.
    Template: {"type": "string", "format": "template"};
    /// The label of a metric series, as `name:value`.
    TagFilter: {"type": "string", "format": "tag-filter", "pattern": "^[^:]+:"};
    /// The path of a request below the address of a service, with its query.
    RequestPath: {"type": "string", "format": "path", "pattern": "^/", "description": "Path below the address of the service"};
}
