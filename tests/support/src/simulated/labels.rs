//! Label selectors, as the API server reads and applies them (apimachinery, pkg/labels/selector.go).

use serde_json::Value;

/// Requirements that must all be met.
#[derive(Debug, Clone, Default)]
pub struct Labels(Vec<Requirement>);

#[derive(Debug, Clone)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Above(i64),
    Below(i64),
}

impl Labels {
    /// Parses a selector. Returns `None` if the API server would respond with 400.
    pub fn parse(text: &str) -> Option<Self> {
        let (mut parts, mut depth) = (vec![String::new()], 0);
        for letter in text.chars() {
            depth += match letter {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            match letter {
                ',' if depth == 0 => parts.push(String::new()),
                letter => parts.last_mut()?.push(letter),
            }
        }
        if text.trim().is_empty() {
            return Some(Self::default());
        }
        parts
            .iter()
            .map(|part| Requirement::parse(part.trim()))
            .collect::<Option<_>>()
            .map(Self)
    }

    /// Whether an object has labels that meet all requirements.
    pub fn select(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.0.iter().all(|Requirement { key, test }| {
            let value = labels[key.as_str()].as_str();
            let among = |values: &[String]| {
                value.is_some_and(|value| values.iter().any(|one| one == value))
            };
            let number = value.and_then(|value| value.parse::<i64>().ok());
            match test {
                Test::In(values) => among(values),
                Test::NotIn(values) => !among(values),
                Test::Exists => value.is_some(),
                Test::Absent => value.is_none(),
                Test::Above(least) => number.is_some_and(|number| number > *least),
                Test::Below(most) => number.is_some_and(|number| number < *most),
            }
        })
    }
}

impl Requirement {
    fn parse(text: &str) -> Option<Self> {
        let requirement = |key: &str, test| {
            let key = key.trim();
            is_key(key).then(|| Self {
                key: key.to_owned(),
                test,
            })
        };
        let value = |text: &str| is_value(text.trim()).then(|| text.trim().to_owned());
        if let Some(key) = text.strip_prefix('!') {
            return requirement(key, Test::Absent);
        }
        if let Some((head, set)) = text.split_once('(') {
            let (key, operator) = head.trim().split_once(char::is_whitespace)?;
            let set = set.strip_suffix(')').filter(|set| !set.is_empty())?;
            let values = set.split(',').map(value).collect::<Option<Vec<_>>>()?;
            return match operator.trim() {
                "in" => requirement(key, Test::In(values)),
                "notin" => requirement(key, Test::NotIn(values)),
                _ => None,
            };
        }
        if let Some((key, unwanted)) = text.split_once("!=") {
            return requirement(key, Test::NotIn(vec![value(unwanted)?]));
        }
        if let Some((key, wanted)) = text.split_once("==").or_else(|| text.split_once('=')) {
            return requirement(key, Test::In(vec![value(wanted)?]));
        }
        if let Some((key, least)) = text.split_once('>') {
            return requirement(key, Test::Above(least.trim().parse().ok()?));
        }
        if let Some((key, most)) = text.split_once('<') {
            return requirement(key, Test::Below(most.trim().parse().ok()?));
        }
        requirement(text, Test::Exists)
    }
}

/// Whether the text is a label key: a name of at most 63 letters, which may follow a DNS subdomain and a slash.
fn is_key(key: &str) -> bool {
    let (prefix, name) = key
        .split_once('/')
        .map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let subdomain = |prefix: &str| {
        let part = |part: &str| {
            let inner = |letter: char| {
                letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-'
            };
            !part.is_empty()
                && part.chars().all(inner)
                && !part.starts_with('-')
                && !part.ends_with('-')
        };
        prefix.len() <= 253 && prefix.split('.').all(part)
    };
    !name.is_empty() && is_value(name) && prefix.is_none_or(subdomain)
}

/// Whether the text is a label value: at most 63 letters, digits, `-`, `_` and `.`, the first and the last a letter or digit.
fn is_value(value: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let outer = |letter: Option<char>| letter.is_none_or(|letter| letter.is_ascii_alphanumeric());
    value.len() <= 63
        && value.chars().all(inner)
        && outer(value.chars().next())
        && outer(value.chars().next_back())
}
