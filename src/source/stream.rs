//! Going through a file once, object by object: it may be hundreds of megabytes, of which little is kept.
//!
//! Nothing larger than one object is ever held. The exception is a list that says its kind only after its items, where
//! the items do not say theirs: those are held until it does. No `kubectl` prints such.

use std::{collections::BTreeMap, fmt, io::Read};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::snapshot::{SAVES_ONE, Saved, unreadable};

/// Visits values that can hold no object.
macro_rules! unexpected {
    ($($visit:ident $type:ty),*) => {
        $(fn $visit<E>(self, _: $type) -> Result<(), E> {
            self.note_malformed();
            Ok(())
        })*
    };
}

/// Shows `saved` each object of each document.
pub(super) fn read(source: impl Read, saved: &mut Saved) -> Result<(), String> {
    let mut documents = serde_json::Deserializer::from_reader(source);
    while documents.end().is_err() {
        let mut held = Vec::new();
        Element {
            saved,
            list_kind: "",
            held: &mut held,
            is_items: false,
        }
        .deserialize(&mut documents)
        .map_err(|error| match error.io_error_kind() {
            Some(_) => unreadable(&error.into()),
            // The parser names line and column.
            None => format!("it is not what `{SAVES_ONE}` prints: {error}"),
        })?;
        for object in held {
            saved.take("", &object);
        }
    }
    Ok(())
}

/// A document, the items of a list, or one of them.
struct Element<'a> {
    saved: &'a mut Saved,
    /// The kind of an item that does not say its own. Empty where the list has not said it either.
    list_kind: &'a str,
    /// Receives the objects whose kind is not known yet.
    held: &'a mut Vec<String>,
    is_items: bool,
}

impl Element<'_> {
    fn note_malformed(self) {
        let nameless = Default::default();
        let why = "a field has an unexpected type";
        self.saved.note_malformed(self.list_kind, nameless, why);
    }
}

impl<'de> DeserializeSeed<'de> for Element<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Element<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    /// The items of a list are taken as they come. The other fields are put together again, as the object's own text.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (mut fields, mut kind) = (BTreeMap::new(), String::new());
        let mut held = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            if key == "items" && (kind.is_empty() || kind.ends_with("List")) {
                map.next_value_seed(Element {
                    saved: self.saved,
                    list_kind: kind.trim_end_matches("List"),
                    held: &mut held,
                    is_items: true,
                })?;
                continue;
            }
            let value = map.next_value::<Box<RawValue>>()?;
            if key == "kind" {
                kind = serde_json::from_str(value.get()).unwrap_or_default();
            }
            fields.insert(key, value);
        }
        let text = serde_json::to_string(&fields).map_err(A::Error::custom)?;
        let known = if kind.is_empty() {
            self.list_kind
        } else {
            &kind
        };
        if known.is_empty() {
            self.held.push(text);
        } else {
            self.saved.take(known, &text);
        }
        if let Some(item_kind) = known.strip_suffix("List") {
            for item in held {
                self.saved.take(item_kind, &item);
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq
            .next_element_seed(Element {
                saved: self.saved,
                list_kind: self.list_kind,
                held: self.held,
                is_items: false,
            })?
            .is_some()
        {}
        self.visit_unit()
    }

    /// An empty list is null where a program of Go has written it.
    fn visit_unit<E>(self) -> Result<(), E> {
        if !self.is_items {
            self.note_malformed();
        }
        Ok(())
    }

    unexpected!(visit_bool bool, visit_i64 i64, visit_u64 u64, visit_f64 f64, visit_str &str);
}
