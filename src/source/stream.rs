//! Going through a file once, object by object: it may be hundreds of megabytes, of which little is kept.
//!
//! Nothing larger than one object is ever held. The exception is a list that says its kind only after its items, where
//! the items do not say theirs: those are held until it does. No `kubectl` prints such.

use std::fmt;
use std::io::{self, BufReader, ErrorKind, Read};

use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::snapshot::{Saved, SnapshotError};

/// What is read from the file at once.
const CHUNK: usize = 64 * 1024;
const UNEXPECTED: &str = "a field has an unexpected type";

/// Visits values of types that were not expected.
macro_rules! unexpected {
    ($($visit:ident $type:ty),*) => {
        $(fn $visit<E>(self, _: $type) -> Result<bool, E> {
            Ok(false)
        })*
    };
}

/// Shows `saved` each object of each document.
pub(super) fn read(source: impl Read, saved: &mut Saved) -> Result<(), SnapshotError> {
    let text = BufReader::with_capacity(
        CHUNK,
        Text {
            source,
            cut: Vec::new(),
        },
    );
    let mut documents = serde_json::Deserializer::from_reader(text);
    while documents.end().is_err() {
        let document = Element {
            saved,
            list_kind: "",
            held: None,
            is_items: false,
        };
        let is_object =
            document
                .deserialize(&mut documents)
                .map_err(|error| match error.io_error_kind() {
                    Some(_) => SnapshotError::Unreadable(error.into()),
                    None => SnapshotError::Syntax(error),
                })?;
        if !is_object {
            saved.note_malformed("", (None, None), UNEXPECTED);
        }
    }
    Ok(())
}

/// A document, or an item of a list; or all items of a list. Gives whether it is that: an object; items, or null.
struct Element<'a> {
    saved: &'a mut Saved,
    /// The kind that an item has which does not say its own: empty where the list has not said either.
    list_kind: &'a str,
    /// Where an item waits whose kind is not known yet; a document cannot.
    held: Option<&'a mut Vec<String>>,
    is_items: bool,
}

impl<'de> DeserializeSeed<'de> for Element<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Element<'_> {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    /// A list's items are taken as they come; the other fields are put together again, as the object's own text.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let Self {
            saved,
            list_kind,
            held: waiting,
            is_items,
        } = self;
        if is_items {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(false);
        }
        let mut text = "{".to_owned();
        let mut kind = String::new();
        let mut held = Vec::new();
        let mut any_items = false;
        while let Some(key) = map.next_key::<String>()? {
            if key == "items" && (kind.is_empty() || kind.ends_with("List")) {
                any_items = true;
                let list_kind = kind.trim_end_matches("List");
                let items = Element {
                    saved,
                    list_kind,
                    held: Some(&mut held),
                    is_items: true,
                };
                if !map.next_value_seed(items)? {
                    // What the items are instead spoils the list.
                    text += "\"items\":0,";
                }
                continue;
            }
            let value = map.next_value::<Box<RawValue>>()?;
            if key == "kind" {
                kind = serde_json::from_str(value.get()).unwrap_or_default();
            }
            text += &serde_json::Value::from(key).to_string();
            text.push(':');
            text += value.get();
            text.push(',');
        }
        text.truncate(text.trim_end_matches(',').len());
        text.push('}');
        let known = if kind.is_empty() { list_kind } else { &kind };
        match waiting {
            Some(waiting) if known.is_empty() && !any_items => waiting.push(text),
            _ => saved.take(known, &text),
        }
        if known.ends_with("List") {
            let item_kind = known.trim_end_matches("List");
            for item in &held {
                saved.take(item_kind, item);
            }
        }
        Ok(true)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<bool, A::Error> {
        let Self {
            saved,
            list_kind,
            mut held,
            is_items,
        } = self;
        if !is_items {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(false);
        }
        loop {
            let item = Element {
                saved,
                list_kind,
                held: held.as_deref_mut(),
                is_items: false,
            };
            match seq.next_element_seed(item)? {
                Some(true) => {}
                Some(false) => saved.note_malformed(list_kind, (None, None), UNEXPECTED),
                None => return Ok(true),
            }
        }
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(self.is_items)
    }

    unexpected!(visit_bool bool, visit_i64 i64, visit_u64 u64, visit_f64 f64, visit_str &str);
}

/// A source that has to be text: a file of another kind is reported as such, not by where its JSON goes wrong.
struct Text<R> {
    source: R,
    /// A character that the last chunk has cut in two.
    cut: Vec<u8>,
}

impl<R: Read> Read for Text<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(into)?;
        self.cut.extend_from_slice(&into[..read]);
        let text = match str::from_utf8(&self.cut) {
            Ok(text) => text.len(),
            Err(cut) if cut.error_len().is_none() && read > 0 => cut.valid_up_to(),
            Err(_) => {
                return Err(io::Error::new(
                    ErrorKind::InvalidData,
                    "stream did not contain valid UTF-8",
                ));
            }
        };
        self.cut.drain(..text);
        Ok(read)
    }
}
