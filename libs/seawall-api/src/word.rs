//! Enums whose values are words on the wire.

/// Defines enums of words. A word that this version does not know is kept in `Other`, so that an older client reads a newer hub.
macro_rules! words {
    ($($(#[$about:meta])+ $name:ident { $($(#[$variant_about:meta])+ $variant:ident = $word:literal,)+ })+) => {$(
        $(#[$about])+
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_about])+ $variant,)+
            /// A word that this version does not know.
            Other(String),
        }

        impl $name {
            /// All known words.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word on the wire.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Other(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)+
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer).map(|word| Self::from(&*word))
            }
        }

        crate::word::inline_schema! { $name: {"type": "string", "enum": Self::WORDS} }
    )+};
}

/// Gives a type a schema that stands in place wherever the type is used.
macro_rules! inline_schema {
    ($name:ident: $schema:tt) => {
        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}

pub(crate) use inline_schema;
pub(crate) use words;
