//! The paths of requests. They are ours rather than those of `kube`, which escapes no name: whoever
//! wrote a name may have meant another path.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::kubernetes::Kind;

/// The characters of a name that need no escape.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// Returns the path of all objects of a kind in `namespace`; an empty one means all namespaces.
pub fn collection<T: Kind>(namespace: &str) -> String {
    let [api, plural] = T::API;
    if namespace.is_empty() {
        format!("{api}/{plural}")
    } else {
        format!("{api}/namespaces/{}/{plural}", encode(namespace))
    }
}

/// Returns the path of one object of a kind.
pub fn object<T: Kind>(namespace: &str, name: &str) -> String {
    format!("{}/{}", collection::<T>(namespace), encode(name))
}

pub fn encode(name: &str) -> String {
    utf8_percent_encode(name, PLAIN).to_string()
}
