//! Reads a snapshot once, object by object. The file may have
//! hundreds of megabytes, and little of it is kept.
//!
//! Nothing larger than one object is held in memory, with one exception: if the items of a list do
//! not say their kind, and the list says its own only after the items, the items are held until
//! then. No `kubectl` prints such a list.

use std::{collections::BTreeMap, fmt, io::Read};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// Declares the visits of values that cannot hold an object.
macro_rules! unexpected {
    ($($visit:ident $type:ty),*) => {
        $(fn $visit<E>(self, _: $type) -> Result<(), E> {
            (self.add)(self.list_kind, None);
            Ok(())
        })*
    };
}

/// Receives an object: its kind, which is empty if it is not known, and its text, which is `None`
/// if the value is no object.
type Add<'a> = &'a mut dyn FnMut(&str, Option<&str>);

/// Passes each object of each document to `add`.
pub fn read(source: impl Read, add: Add<'_>) -> serde_json::Result<()> {
    let mut documents = serde_json::Deserializer::from_reader(source);
    while documents.end().is_err() {
        let mut held = Vec::new();
        Element {
            add,
            list_kind: "",
            held: &mut held,
            place: Place::Document,
        }
        .deserialize(&mut documents)?;
        for object in held {
            add("", Some(&object));
        }
    }
    Ok(())
}

/// A document, the items of a list, or one item.
struct Element<'a> {
    add: Add<'a>,
    /// The kind of an item that does not state its own; empty if the list has not stated it either.
    list_kind: &'a str,
    /// Receives the objects whose kind is not known yet.
    held: &'a mut Vec<String>,
    place: Place,
}

/// The place of a value in the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Outside of everything.
    Document,
    /// In a list, as the value of `items`.
    Items,
    /// In the array `items`, as one object.
    Item,
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

    /// Visits a list or another object. The items of a list are visited as they come, and are not lists
    /// themselves. The other fields are joined again, as the text of the object itself.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (mut fields, mut kind) = (BTreeMap::new(), String::new());
        let mut held = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let is_list = kind.is_empty() || kind.ends_with("List");
            if key == "items" && is_list && self.place == Place::Document {
                map.next_value_seed(Element {
                    add: self.add,
                    list_kind: kind.trim_end_matches("List"),
                    held: &mut held,
                    place: Place::Items,
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
        if known.ends_with("List") && fields.contains_key("items") {
            return Err(A::Error::custom("a list inside another list"));
        }
        if known.is_empty() {
            self.held.push(text);
        } else {
            (self.add)(known, Some(&text));
        }
        if let Some(item_kind) = known.strip_suffix("List") {
            for item in held {
                (self.add)(item_kind, Some(&item));
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        if self.place != Place::Items {
            return Err(A::Error::custom("an array that is not the items of a list"));
        }
        while seq
            .next_element_seed(Element {
                add: self.add,
                list_kind: self.list_kind,
                held: self.held,
                place: Place::Item,
            })?
            .is_some()
        {}
        Ok(())
    }

    /// Visits a null. A program written in Go may print it for an empty list of items.
    fn visit_unit<E>(self) -> Result<(), E> {
        if self.place != Place::Items {
            (self.add)(self.list_kind, None);
        }
        Ok(())
    }

    unexpected!(visit_bool bool, visit_i64 i64, visit_u64 u64, visit_f64 f64, visit_str &str);
}
