//! The user's selections: a cluster, namespaces and nodes.
//!
//! The API server would evaluate a label selector, but a snapshot has no server. The kube crate
//! writes selectors and cannot parse them.

use std::{collections::BTreeMap, fmt, path::PathBuf, str::FromStr, sync::LazyLock};

use clap::Args;
use derive_more::Display;
use regex::Regex;
use serde::{Serialize, Serializer};

use crate::{
    facts::{AffinityTerm, Read, Requirement, Unread},
    words::{joined, prefixed},
};

/// The cluster that the user asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Which cluster")]
pub struct Target {
    /// Context of the kubeconfig to use
    #[arg(long, value_name = "NAME", value_parser = filled("write the name of a context"))]
    pub context: Option<String>,

    /// Kubeconfig file to use [default: KUBECONFIG, then ~/.kube/config, then the pod's
    /// ServiceAccount]
    #[arg(long, value_name = "FILE", value_parser = path)]
    pub kubeconfig: Option<PathBuf>,
}

/// The namespaces whose pods are looked at, as every report shows them.
#[derive(Debug, Clone, Default, Args, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[command(next_help_heading = "Which pods")]
pub struct NamespaceFilter {
    /// Only namespaces whose name contains a match of this regular expression [default: all]
    #[arg(id = "namespace_regex", long = "namespace-regex", display_order = 0, value_name = "REGEX", value_parser = regex)]
    #[serde(rename = "namespaceRegex", serialize_with = "as_text")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub include: Option<Regex>,

    /// Leave out namespaces whose name contains a match of this regular expression
    #[arg(id = "namespace_exclude_regex", long = "namespace-exclude-regex", display_order = 2, value_name = "REGEX", value_parser = regex)]
    #[serde(rename = "namespaceExcludeRegex", serialize_with = "as_text")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub exclude: Option<Regex>,
}

#[expect(clippy::ref_option, reason = "serde passes the field so")]
fn as_text<S: Serializer>(regex: &Option<Regex>, to: S) -> Result<S::Ok, S::Error> {
    regex.as_ref().map(Regex::as_str).serialize(to)
}

/// Returns a parser that accepts any text except whitespace alone. `hint` ends its error message.
pub fn filled(hint: &'static str) -> impl Fn(&str) -> Result<String, String> + Clone {
    move |text| match text.trim() {
        "" => Err(format!("it is empty; {hint}")),
        _ => Ok(text.to_owned()),
    }
}

/// Parses the name of a file.
pub fn path(text: &str) -> Result<PathBuf, String> {
    filled("write a file name")(text).map(PathBuf::from)
}

/// Parses a regular expression.
pub fn regex(text: &str) -> Result<Regex, String> {
    let text = filled("leave it out for all, or write one such as ^prod-")(text)?;
    Regex::new(&text).map_err(|error| {
        let error = error.to_string();
        let cause = error
            .lines()
            .last()
            .unwrap_or_default()
            .trim_start_matches("error: ");
        format!("{cause}; write a regular expression such as ^prod- or ^(compute|impala)-")
    })
}

impl NamespaceFilter {
    /// Reports whether a run looks at the pods of all namespaces.
    pub fn selects_all(&self) -> bool {
        self.include.is_none() && self.exclude.is_none()
    }

    /// Reports whether a run looks at the pods of `namespace`.
    pub fn matches(&self, namespace: &str) -> bool {
        let is_in = |regex: &Regex| regex.is_match(namespace);
        self.include.as_ref().is_none_or(is_in) && !self.exclude.as_ref().is_some_and(is_in)
    }
}

impl fmt::Display for NamespaceFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.include {
            Some(regex) => write!(f, "matching {:?}", regex.as_str())?,
            None => f.write_str("all")?,
        }
        if let Some(regex) = &self.exclude {
            write!(f, ", but not those matching {:?}", regex.as_str())?;
        }
        Ok(())
    }
}

/// The user's selectors for leaf nodes and fenced nodes, in addition to the marks that nodes carry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[command(next_help_heading = "Which pods")]
pub struct NodeSelectors {
    /// Treat the nodes that SELECTOR matches as leaf nodes (virtual or edge nodes, whose pods can run
    /// on although the node is NotReady), in addition to the nodes that are recognized as such.
    /// SELECTOR is a label selector, annotation:KEY[=VALUE] or taint:KEY[=VALUE]. Repeatable, or
    /// separated by semicolons
    #[arg(id = "leaf_node_selector", long = "leaf-node-selector", value_name = "SELECTOR", value_delimiter = ';', value_parser = node_selector)]
    #[serde(rename = "leafNodeSelector", serialize_with = "as_typed")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub leaf: Vec<NodeSelector>,

    /// Treat the nodes that SELECTOR matches as known to be off (fenced): if one is on, two machines
    /// can write to its volumes. The syntax is that of --leaf-node-selector
    #[arg(id = "fenced_node_selector", long = "fenced-node-selector", value_name = "SELECTOR", value_delimiter = ';', value_parser = node_selector)]
    #[serde(rename = "fencedNodeSelector", serialize_with = "as_typed")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub fenced: Vec<NodeSelector>,
}

impl NodeSelectors {
    /// Lists the annotations that they name.
    pub fn annotations(&self) -> impl Iterator<Item = &str> {
        self.leaf
            .iter()
            .chain(&self.fenced)
            .filter_map(|it| match it {
                NodeSelector::Annotation(key, _) => Some(key.as_str()),
                NodeSelector::Labels(_) | NodeSelector::Taint(..) => None,
            })
    }
}

/// Parses a selector of nodes.
pub fn node_selector(text: &str) -> Result<NodeSelector, String> {
    text.parse().map_err(|cause| format!("{cause}; write a label selector such as example.org/leaf=true, or annotation:KEY[=VALUE], or taint:KEY[=VALUE]"))
}

fn as_typed<S: Serializer>(selectors: &[NodeSelector], to: S) -> Result<S::Ok, S::Error> {
    joined(selectors.iter().map(NodeSelector::typed), ";").serialize(to)
}

/// A selector for nodes: by labels, by an annotation or by a taint. Annotation and taint have a key
/// and an optional value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeSelector {
    /// A label selector.
    Labels(Selector),
    /// `annotation:KEY[=VALUE]`
    Annotation(String, Option<String>),
    /// `taint:KEY[=VALUE]`
    Taint(String, Option<String>),
}

impl FromStr for NodeSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let Some((kind @ ("annotation" | "taint"), mark)) = text.split_once(':') else {
            return text.parse().map(Self::Labels);
        };
        let (key, value) = mark
            .split_once('=')
            .map_or((mark, None), |(key, value)| (key, Some(value)));
        let key = label_key(key)?;
        Ok(if kind == "annotation" {
            Self::Annotation(key, value.map(str::to_owned))
        } else {
            Self::Taint(key, value.map(label_value).transpose()?)
        })
    }
}

/// Formats the selector as the report shows it: "label selector type=virtual".
impl fmt::Display for NodeSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, key, value) = match self {
            Self::Labels(selector) => return write!(f, "label selector {selector}"),
            Self::Annotation(key, value) => ("annotation", key, value),
            Self::Taint(key, value) => ("taint", key, value),
        };
        write!(f, "{what} {key}{}", prefixed("=", value.as_ref()))
    }
}

impl NodeSelector {
    /// Returns the selector as the user typed it.
    pub fn typed(&self) -> String {
        match self {
            Self::Labels(selector) => selector.to_string(),
            Self::Annotation(..) | Self::Taint(..) => self.to_string().replacen(' ', ":", 1),
        }
    }
}

/// A label selector: requirements that must all hold.
#[derive(Debug, Clone, PartialEq, Eq, Display)]
#[display("{text}")]
pub struct Selector {
    text: String,
    requirements: Vec<Requirement>,
}

impl Selector {
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Lists the label keys that the selector depends on.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.requirements
            .iter()
            .map(|requirement| requirement.key.as_str())
    }

    /// Reports whether every requirement holds on `labels`.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements.iter().all(|it| it.holds(labels))
    }
}

/// The pattern of one requirement, in one of these forms: `a=b`, `a==b`, `a!=b`, `a in (b,c)`,
/// `a notin (b,c)`, `a>1`, `a<1`, `a` and `!a`.
const REQUIREMENT: &str = r"(?xs)^\s* (?<not>!)? \s* (?<key>[^\s!=<>(),]+)
    (?: \s+ (?<set>in|notin) \s* \( (?<values>[^()]*) \) | \s* (?<sign>==?|!=|<|>) (?<value>[^,()]*) )?
    \s* $";

impl FromStr for Selector {
    type Err = String;

    /// Parses requirements that commas separate.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        static SHAPE: LazyLock<Result<Regex, regex::Error>> =
            LazyLock::new(|| Regex::new(REQUIREMENT));
        let shape = SHAPE.as_ref().map_err(ToString::to_string)?;
        let mut requirements = Vec::new();
        let mut in_values = false;
        let is_end = |letter| {
            in_values = letter == '(' || in_values && letter != ')';
            letter == ',' && !in_values
        };
        for part in text.split(is_end) {
            let found = shape
                .captures(part)
                .ok_or_else(|| format!("{part:?} is not a label requirement"))?;
            let word = |name| found.name(name).map(|word| word.as_str().trim());
            let values = word("values")
                .map(|all| all.split(',').collect())
                .or_else(|| Some(vec![word("value")?]))
                .unwrap_or_default()
                .into_iter()
                .map(label_value)
                .collect::<Result<Vec<_>, _>>()?;
            let operator = match (word("not"), word("set").or(word("sign"))) {
                (None, None) => "Exists",
                (Some(_), None) => "DoesNotExist",
                (None, Some("in" | "=" | "==")) => "In",
                (None, Some("notin" | "!=")) => "NotIn",
                (None, Some(">")) if values[0].parse::<i64>().is_ok() => "Gt",
                (None, Some("<")) if values[0].parse::<i64>().is_ok() => "Lt",
                _ => return Err(format!("{part:?} is not a label requirement")),
            };
            requirements.push(Requirement {
                key: label_key(&found["key"])?,
                operator: operator.to_owned(),
                values,
            });
        }
        Ok(Self {
            text: text.trim().to_owned(),
            requirements,
        })
    }
}

impl Requirement {
    /// Reports whether the requirement holds on `labels`. As in Kubernetes, an absent label is not
    /// in any set of values.
    pub fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let (value, values) = (labels.get(&self.key), &self.values);
        let number = |value: Option<&String>| value?.parse::<i64>().ok();
        let numbers = || number(value).zip(number(values.first()));
        let is_in = value.is_some_and(|value| values.contains(value));
        match self.operator.as_str() {
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            "In" => is_in,
            "NotIn" => !is_in,
            "Gt" => numbers().is_some_and(|(number, least)| number > least),
            "Lt" => numbers().is_some_and(|(number, most)| number < most),
            _ => false,
        }
    }

    /// Formats the requirement for a label selector. The error says why that is not possible.
    fn selector(&self) -> Read<String> {
        let Self {
            key,
            operator,
            values,
        } = self;
        // A character with a meaning in selectors, such as a comma, would change the selection.
        let plain = |word: &String| {
            word.chars()
                .all(|letter| is_label_letter(letter) || letter == '/')
        };
        let all = values.join(",");
        let selector = match (operator.as_str(), values.as_slice()) {
            ("In", [_, ..]) => format!("{key} in ({all})"),
            ("NotIn", [_, ..]) => format!("{key} notin ({all})"),
            ("Exists", []) => key.clone(),
            ("DoesNotExist", []) => format!("!{key}"),
            ("Gt", [value]) => format!("{key}>{value}"),
            ("Lt", [value]) => format!("{key}<{value}"),
            _ => {
                return Err(Unread(format!(
                    "no label selector says {key} {operator} ({all})"
                )));
            }
        };
        if key.is_empty() || !plain(key) || !values.iter().all(plain) {
            return Err(Unread(format!(
                "{key} {operator} ({all}) is not a valid label requirement"
            )));
        }
        Ok(selector)
    }
}

impl AffinityTerm {
    /// Returns the term's requirements as a label selector, without those on zones and regions. The error says why no
    /// selector can express them.
    pub fn selector(&self) -> Read<Selector> {
        if self.fields {
            return Err(Unread("it asks for a field of the node".to_owned()));
        }
        let requirements = self
            .requirements
            .iter()
            .filter(|it| !it.of_zone())
            .cloned()
            .collect::<Vec<_>>();
        let text = requirements
            .iter()
            .map(Requirement::selector)
            .collect::<Read<Vec<_>>>()?
            .join(",");
        Ok(Selector { text, requirements })
    }
}

fn label_key(key: &str) -> Result<String, String> {
    // The parts are the optional prefix and the name.
    let mut parts = key.splitn(2, '/');
    if parts.all(|part| !part.is_empty() && part.chars().all(is_label_letter)) {
        return Ok(key.to_owned());
    }
    Err(format!("{key:?} is not a valid label key"))
}

fn label_value(value: &str) -> Result<String, String> {
    let value = value.trim();
    if value.chars().all(is_label_letter) {
        return Ok(value.to_owned());
    }
    Err(format!("{value:?} is not a valid label value"))
}

fn is_label_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-_.".contains(letter)
}

/// The maximum length of a name, in characters.
pub const MAX_NAME_CHARS: usize = 253;

/// Reports whether the API server accepts `name` for pods, nodes and most other kinds (RFC 1123).
pub fn is_name(name: &str) -> bool {
    (1..=MAX_NAME_CHARS).contains(&name.len())
        && name
            .chars()
            .all(|letter| matches!(letter, 'a'..='z' | '0'..='9' | '-' | '.'))
        && name.trim_matches(['-', '.']) == name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selects_as_kubernetes_does() {
        let labels = [
            ("type", "virtual-kubelet"),
            ("example.com/zone", "a"),
            ("disks", "3"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
        let node = BTreeMap::from(labels);
        let all: [&[&str]; 2] = [
            &[
                "type=virtual-kubelet",
                "type==virtual-kubelet",
                "absent!=x",
                "type",
                "!absent",
                "example.com/zone in (a, b)",
                "absent notin (a)",
                "type=virtual-kubelet, !absent",
                "disks>2",
                "disks < 4",
                "type,\n  !absent",
            ],
            &[
                "type = other",
                "type!=virtual-kubelet",
                "absent",
                "!type",
                "example.com/zone notin (a,b)",
                "absent in (a)",
                "type=virtual-kubelet,example.com/zone in (b,c)",
                "disks>3",
                "disks<3",
                "type>2",
                "absent<3",
            ],
        ];
        for (selectors, matches) in all.into_iter().zip([true, false]) {
            for selector in selectors {
                let parsed: Selector = selector.parse().expect(selector);
                assert_eq!(parsed.matches(&node), matches, "{selector}");
            }
        }
    }

    #[test]
    fn refuses_what_is_no_selector() {
        for text in [
            "",
            ",",
            "a,",
            "a in b",
            "a in (b",
            "a b",
            "a in (b))",
            "=b",
            "a~b",
            "/a",
            "a within (b)",
            "a=b c",
            "a>b",
            "a>",
            ">1",
        ] {
            assert!(text.parse::<Selector>().is_err(), "{text:?}");
        }
    }

    /// The requirement is asked for as it is, so it may not become another one.
    #[test]
    fn a_requirement_is_asked_for_as_kubernetes_reads_it_or_not_at_all() {
        for (key, operator, values, selector) in [
            ("a/b", "In", ["x", "y"].as_slice(), Some("a/b in (x,y)")),
            ("a", "DoesNotExist", &[], Some("!a")),
            ("a", "Gt", &["1"], Some("a>1")),
            ("", "In", &["x"], None),
            ("a b", "In", &["x"], None),
            ("a", "In", &["x,y"], None),
            ("a", "In", &[], None),
            ("a", "Lt", &["1", "2"], None),
            ("a", "Near", &["x"], None),
        ] {
            let requirement = Requirement {
                key: key.to_owned(),
                operator: operator.to_owned(),
                values: values.iter().map(ToString::to_string).collect(),
            };
            assert_eq!(
                requirement.selector().ok().as_deref(),
                selector,
                "{requirement:?}"
            );
        }
    }
}
