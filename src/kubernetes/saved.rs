//! The item of a saved file that says what the file has.

use jiff::Timestamp;

use super::{Kind, meta::Malformed};

/// The kind of the item, and the version of its form.
pub const SAVED: &str = "Saved";
pub const SAVED_VERSION: &str = "pod-reaper.io/v1";

raw! {
    pub struct RawSaved {
        /// The API server's time at the end of the reading.
        pub time: Option<Timestamp>,
        /// The version of the program that read.
        pub version: String,
        /// The kinds that were read to the end: if an object of them is not in the file, it does not exist.
        pub read: Vec<String>,
        /// The kinds that were not.
        pub unread: Vec<UnreadKind>,
        pub malformed: Vec<Malformed>,
        /// The annotations of nodes that the user's selectors named, besides those that are always kept.
        pub annotations: Vec<String>,
    }

    pub struct UnreadKind {
        pub kind: String,
        pub cause: String,
    }
}

impl RawSaved {
    /// Notes that all objects of a kind were read, except those that could not be.
    pub fn add<T: Kind>(&mut self, malformed: Vec<Malformed>) {
        self.read.push(T::KIND.to_owned());
        self.malformed.extend(malformed);
    }

    pub fn add_unread<T: Kind>(&mut self, cause: String) {
        let kind = T::KIND.to_owned();
        self.unread.push(UnreadKind { kind, cause });
    }

    /// Reports whether all objects of a kind were read.
    pub fn has<T: Kind>(&self) -> bool {
        self.read.iter().any(|kind| kind == T::KIND)
    }

    pub fn unread<T: Kind>(&self) -> Option<&str> {
        let of_kind = self.unread.iter().find(|it| it.kind == T::KIND)?;
        Some(&of_kind.cause)
    }
}
