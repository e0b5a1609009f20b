//! Going through a file once, object by object: it may be hundreds of megabytes, of which little is kept.
//!
//! Nothing larger than one object is ever held. The exception is a list that says its kind only after its items, where
//! the items do not say theirs: those are held until it does. No `kubectl` prints such.

use std::{
    fmt,
    io::{self, ErrorKind, Read},
};

use serde::{
    Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::snapshot::{Saved, SnapshotError};

/// What is read from the file at once.
const CHUNK: usize = 64 * 1024;
const UNEXPECTED: &str = "a field has an unexpected type";

/// Visits a value of a type that was not expected.
macro_rules! unexpected {
    ($value:expr) => {
        unexpected!($value, visit_bool bool, visit_i64 i64, visit_u64 u64, visit_f64 f64, visit_str &str);
    };
    ($value:expr, $($visit:ident $type:ty),*) => {
        $(fn $visit<E>(self, _: $type) -> Result<Self::Value, E> {
            Ok($value(self))
        })*
    };
}

/// Shows `saved` each object of each document.
pub(super) fn read(source: impl Read, saved: &mut Saved) -> Result<(), SnapshotError> {
    let mut documents = serde_json::Deserializer::from_reader(Text::new(source));
    while documents.end().is_err() {
        let document = Element { saved, list_kind: "", held: None };
        document.deserialize(&mut documents).map_err(|error| match error.io_error_kind() {
            Some(_) => SnapshotError::Unreadable(error.into()),
            None => SnapshotError::Syntax(error),
        })?;
    }
    Ok(())
}

/// A document, or an item of a list.
struct Element<'a> {
    saved: &'a mut Saved,
    /// The kind that an item has which does not say its own: empty where the list has not said either.
    list_kind: &'a str,
    /// Where an item waits whose kind is not known yet; a document cannot.
    held: Option<&'a mut Vec<String>>,
}

impl<'de> DeserializeSeed<'de> for Element<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Element<'_> {
    fn unexpected(self) {
        self.saved.note_malformed(self.list_kind, (None, None), UNEXPECTED);
    }
}

impl<'de> Visitor<'de> for Element<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    /// A list's items are taken as they come; the other fields are put together again, as the object's own text.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { saved, list_kind, held: waiting } = self;
        let mut text = "{".to_owned();
        let mut kind = String::new();
        let mut held = Vec::new();
        let mut any_items = false;
        while let Some(key) = map.next_key::<String>()? {
            if key == "items" && (kind.is_empty() || kind.ends_with("List")) {
                any_items = true;
                let items = Items { saved, kind: kind.trim_end_matches("List"), held: &mut held };
                if map.next_value_seed(items)? {
                    continue;
                }
                // What the items are instead spoils the list.
                text += "\"items\":0,";
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
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        self.unexpected();
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.unexpected();
        Ok(())
    }

    unexpected!(|element: Self| element.unexpected());
}

/// The items of a list. Gives whether they are that: items, or null.
struct Items<'a> {
    saved: &'a mut Saved,
    kind: &'a str,
    held: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Items<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<bool, A::Error> {
        let Self { saved, kind, held } = self;
        while seq.next_element_seed(Element { saved, list_kind: kind, held: Some(held) })?.is_some() {}
        Ok(true)
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(true)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(false)
    }

    unexpected!(|_: Self| false);
}

/// A source that has to be text: a file of another kind is reported as such, not by where its JSON goes wrong.
struct Text<R> {
    source: R,
    buffer: Vec<u8>,
    /// The part of `buffer` that is text and was not handed on yet.
    next: usize,
    end: usize,
}

impl<R: Read> Text<R> {
    fn new(source: R) -> Self {
        Self { source, buffer: Vec::with_capacity(CHUNK), next: 0, end: 0 }
    }

    /// Reads on, until there is some text or nothing more.
    fn fill(&mut self) -> io::Result<()> {
        // A character that the last chunk has cut in two.
        self.buffer.drain(..self.end);
        (self.next, self.end) = (0, 0);
        while self.end == 0 {
            let read = self.source.by_ref().take(CHUNK as u64).read_to_end(&mut self.buffer)?;
            self.end = match str::from_utf8(&self.buffer) {
                Ok(text) => text.len(),
                Err(cut) if cut.error_len().is_none() && read > 0 => cut.valid_up_to(),
                Err(_) => {
                    return Err(io::Error::new(ErrorKind::InvalidData, "stream did not contain valid UTF-8"));
                }
            };
            if read == 0 {
                break;
            }
        }
        Ok(())
    }
}

impl<R: Read> Read for Text<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.next == self.end {
            self.fill()?;
        }
        let count = into.len().min(self.end - self.next);
        into[..count].copy_from_slice(&self.buffer[self.next..self.next + count]);
        self.next += count;
        Ok(count)
    }
}
