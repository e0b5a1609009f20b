//! What a report holds as it is: words of the contract, an enum whose variants each have one spelling in every report, metric
//! and document; and entries.

/// Declares an entry. Its name in the schemas may be another one.
macro_rules! entry {
    ($(#[$about:meta])* pub struct $name:ident $(as $entry:literal)? { $($fields:tt)* }) => {
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
        #[cfg_attr(feature = "testing", derive(schemars::JsonSchema))]
        $(#[cfg_attr(feature = "testing", schemars(rename = $entry))])?
        $(#[$about])*
        pub struct $name { $($fields)* }
    };
}
pub(crate) use entry;

/// Declares such an enum. It serializes and prints itself as its code, and knows all of its variants.
/// What each means, in sentences, may stand after its code.
#[macro_export]
macro_rules! codes {
    (
        $(#[$about:meta])*
        pub enum $name:ident {
            $($(#[$doc:meta])* $variant:ident = $code:literal $(=> $means:literal)?,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $code)] $variant,)*
        }

        impl $name {
            /// Every variant, in the order of the declaration.
            pub const ALL: [Self; [$($code),*].len()] = [$(Self::$variant),*];

            /// The word in every report; part of the contract.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $code,)*
                }
            }

            /// What it means, in sentences; nothing where its declaration does not say.
            pub fn means(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($means)?),)*
                }
            }
        }

        // By the word: maps by code are written in that order.
        impl Ord for $name {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.as_str().cmp(other.as_str())
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        $crate::code_schema!($name);
    };
}

pub use codes;

/// The schema of such a word: one of its variants' codes.
#[cfg(feature = "testing")]
#[macro_export]
macro_rules! code_schema {
    ($name:ident) => {
        impl $crate::schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut $crate::schemars::SchemaGenerator) -> $crate::schemars::Schema {
                $crate::schemars::json_schema!({"enum": Self::ALL.map(Self::as_str)})
            }
        }
    };
}

#[cfg(not(feature = "testing"))]
#[macro_export]
#[doc(hidden)]
macro_rules! code_schema {
    ($name:ident) => {};
}
