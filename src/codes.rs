//! Macros for types that every report shows unchanged. `codes!` declares an enum whose variants
//! have the same spelling in every report, metric and document. `entry!` declares a struct that is
//! part of a report.

/// Declares a struct that is part of a report. `as` gives its name in the JSON schemas, if that
/// name differs.
macro_rules! entry {
    ($(#[$about:meta])* pub struct $name:ident $(as $entry:literal)? { $($fields:tt)* }) => {
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        $(#[cfg_attr(test, schemars(rename = $entry))])?
        $(#[$about])*
        pub struct $name { $($fields)* }
    };
}
pub(crate) use entry;

/// Declares an enum of code words. A variant serializes and prints as its code, and `ALL` lists the
/// variants. The text after a code says in whole sentences what the code means.
macro_rules! codes {
    (
        $(#[$about:meta])*
        pub enum $name:ident {
            $($(#[$doc:meta])* $variant:ident = $code:literal $(=> $means:literal)?,)*
        }
    ) => {
        $(#[$about])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize,
        )]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $code)] $variant,)*
        }

        impl $name {
            /// Every variant, in the order of the declaration.
            pub const ALL: [Self; [$($code),*].len()] = [$(Self::$variant),*];

            /// Returns the code, which every report shows and which is part of the contract.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $code,)*
                }
            }

            /// Returns what the code means, in sentences; empty if the declaration has no such
            /// text.
            pub fn means(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($means)?),)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        /// One of the codes.
        #[cfg(test)]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"enum": Self::ALL.map(Self::as_str)})
            }
        }
    };
}
pub(crate) use codes;
