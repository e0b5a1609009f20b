//! The report in GitHub's Markdown, for a ticket or a chat: what needs a person first, commands in fenced blocks.
//!
//! Text from the cluster must not become markup, and must not mention anybody: GitHub makes a mention of `@name`, a link of
//! `#1`, and a formula of `$…$`, also where Markdown itself sees plain text. It does so nowhere in code, so a word with
//! such a letter is shown as code.

use super::{
    PodEntry, Report,
    phrases::{self, clean},
};
use crate::{advice::Step, decide::Verdict, outcome::OutcomeCode};

/// Writes `report` as Markdown.
pub fn write(report: &Report) -> String {
    let mut page = String::new();
    title(&mut page, report);
    for_a_person(&mut page, report);
    nodes(&mut page, report);
    for verdict in [Verdict::Reap, Verdict::Wait, Verdict::Leave] {
        table(&mut page, report, verdict);
    }
    besides(&mut page, report);
    page
}

fn title(page: &mut String, report: &Report) {
    let judged_at = report.judged_at.strftime("%F %TZ");
    *page += &format!(
        "# pod-reaper {}: {}\n\nJudged at {judged_at}. {}\n\n**Summary:** {}\n",
        report.program_version,
        prose(&phrases::run(report)),
        prose(&phrases::settings(report)),
        prose(&phrases::summary(report))
    );
    if let Some(breaker) = &report.breaker {
        *page += &format!(
            "\n> **Nothing is deleted** ({}). {}\n",
            code(breaker.reason.as_str()),
            phrases::breaker(breaker)
                .iter()
                .map(|says| prose(says))
                .collect::<Vec<_>>()
                .join("\n>\n> ")
        );
    }
}

fn for_a_person(page: &mut String, report: &Report) {
    if report.groups.is_empty() {
        return;
    }
    *page += &format!("\n## {}\n", phrases::heading(report, Verdict::Manual));
    for group in &report.groups {
        let pod = &report.pods[group.pods[0]];
        if let Some((says, names)) = phrases::several(report, group) {
            *page += &format!(
                "\n### {}\n\n{}: {}\n",
                prose(&says),
                code(why(pod)),
                prose(&names)
            );
        } else {
            let mut facts = vec![code(why(pod))];
            facts.extend(owner(pod));
            facts.extend(pod.node.as_ref().map(|node| format!("on {}", code(node))));
            facts.push(phrases::overdue(pod.overdue_seconds));
            *page += &format!("\n### {}\n\n{}\n", name(pod), facts.join(", "));
        }
        *page += &format!("\n{}\n", prose(&group.detail));
        if let Some(risk) = &group.risk {
            *page += &format!("\n**Risk:** {}\n", prose(risk));
        }
        for (number, step) in group.steps.iter().enumerate() {
            item(page, &format!("{}. ", number + 1), step);
        }
    }
    if let Some(step) = &report.run_now {
        item(page, "- ", step);
    }
}

fn nodes(page: &mut String, report: &Report) {
    *page += &format!("\n## {}\n", phrases::nodes(report));
    if report.nodes.is_empty() {
        return;
    }
    *page += "\n| Node | State | Terminating pods |\n| --- | --- | --- |\n";
    for node in &report.nodes {
        *page += &format!(
            "| {} | {} | {} |\n",
            code(&node.name),
            prose(&phrases::node(report, node)),
            phrases::terminating(node).as_deref().unwrap_or("none")
        );
    }
    for node in &report.nodes {
        for (words, names) in [
            ("a leaf node, by its", node.leaf_marks.join(", ")),
            ("volumes still attached:", phrases::attached(node)),
        ] {
            if !names.is_empty() {
                *page += &format!("\n- {}: {words} {}\n", code(&node.name), prose(&names));
            }
        }
        node.steps.iter().for_each(|step| item(page, "- ", step));
    }
}

/// The pods with a verdict that leaves a person little to do, a row each; what went wrong first.
fn table(page: &mut String, report: &Report, verdict: Verdict) {
    let mut pods = phrases::of(report, verdict);
    if pods.is_empty() {
        return;
    }
    *page += &format!("\n## {}\n", phrases::heading(report, verdict));
    *page += "\n| Pod | Owner | Node | Overdue | Why | Remarks |\n| --- | --- | --- | --- | --- | --- |\n";
    pods.sort_by_key(|pod| !phrases::went_wrong(pod));
    for pod in pods {
        let note = pod
            .note
            .as_ref()
            .map(|note| format!("**Note:** {}", prose(note)));
        let replacement =
            phrases::replacement(pod).map(|says| format!("**Replacement:** {}", prose(&says)));
        let remarks = phrases::sentence(pod)
            .map(prose)
            .into_iter()
            .chain(replacement)
            .chain(note)
            .collect::<Vec<_>>();
        *page += &format!(
            "| {} | {} | {} | {} | {} | {} |\n",
            name(pod),
            owner(pod).unwrap_or_default(),
            pod.node.as_deref().map(code).unwrap_or_default(),
            phrases::overdue(pod.overdue_seconds).trim_start_matches("overdue "),
            code(why(pod)),
            remarks.join(" ")
        );
    }
}

/// What there is to know besides, what could not be read or seen, and what the reasons mean.
fn besides(page: &mut String, report: &Report) {
    let notices = report.notices.iter();
    let notices =
        notices.map(|notice| format!("{} ({})", prose(&notice.detail), code(notice.code.as_str())));
    list(page, "Worth knowing", notices);
    let errors = report.errors.iter();
    let errors = errors.map(|error| format!("{}: {}", prose(&error.what), prose(&error.cause)));
    list(
        page,
        &format!("Could not be read: {}", report.errors.len()),
        errors,
    );
    list(
        page,
        "Could not be seen",
        report.unseen.iter().map(|sentence| prose(sentence)),
    );
    let reasons = phrases::reasons(report).into_iter().map(|reason| {
        format!(
            "{}: {} *{}*",
            code(reason.as_str()),
            prose(reason.means()),
            prose(reason.advice())
        )
    });
    list(page, "What the reasons mean", reasons);
}

fn list(page: &mut String, heading: &str, items: impl Iterator<Item = String>) {
    for (number, item) in items.enumerate() {
        if number == 0 {
            *page += &format!("\n## {heading}\n\n");
        }
        *page += &format!("- {item}\n");
    }
}

/// The outcome, else the reason.
fn why(pod: &PodEntry) -> &'static str {
    pod.outcome
        .map_or_else(|| pod.reason.as_str(), OutcomeCode::as_str)
}

fn name(pod: &PodEntry) -> String {
    code(&format!("{}/{}", pod.namespace, pod.name))
}

fn owner(pod: &PodEntry) -> Option<String> {
    pod.owner
        .as_ref()
        .map(|owner| code(&format!("{}/{}", owner.kind, owner.name)))
}

/// A step in a list, its command in a fence that belongs to the item.
fn item(page: &mut String, mark: &str, step: &Step) {
    *page += &format!("\n{mark}{}\n", prose(&step.what));
    let Some(command) = &step.command else { return };
    let indent = " ".repeat(mark.len());
    let command = phrases::command(command).replace('\n', &format!("\n{indent}"));
    // A fence that is longer than any run of backticks in it.
    let run = command
        .split(|letter| letter != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat(3.max(run + 1));
    *page += &format!("\n{indent}{fence}sh\n{indent}{command}\n{indent}{fence}\n");
}

/// As code. What a code span of Markdown, or a table, would give a meaning to goes as entities into HTML's element.
fn code(text: &str) -> String {
    let text = clean(text);
    let plain =
        |letter: char| letter.is_alphanumeric() || "-./:_=,+%() {}\"'@#$?!;".contains(letter);
    if !text.is_empty() && text.trim() == text && text.chars().all(plain) {
        return format!("`{text}`");
    }
    let entity = |letter: char| {
        if letter.is_alphanumeric() || "-./".contains(letter) {
            letter.to_string()
        } else {
            format!("&#{};", u32::from(letter))
        }
    };
    format!(
        "<code>{}</code>",
        text.chars().map(entity).collect::<String>()
    )
}

/// As running text, in which nothing is markup.
fn prose(text: &str) -> String {
    let calls = |word: &str| {
        word.contains(['@', '#', '$'])
            || word.contains("://")
            || word.contains("www.")
            || word.contains("GH-")
    };
    let escaped = |word: &str| {
        let mut escaped = String::new();
        for letter in word.chars() {
            match letter {
                '|' => escaped += "&#124;",
                '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '~' | '&' => {
                    escaped.extend(['\\', letter]);
                }
                letter => escaped.push(letter),
            }
        }
        escaped
    };
    let words = clean(text);
    let words = words.split_whitespace().enumerate().map(|(place, word)| {
        if calls(word) || (place == 0 && begins_a_block(word)) {
            code(word)
        } else {
            escaped(word)
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A list, a rule or a heading, where it is the first word of a line.
fn begins_a_block(word: &str) -> bool {
    let unnumbered = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
    word.starts_with(['-', '+', '='])
        || (unnumbered.len() < word.len() && unnumbered.starts_with(['.', ')']))
}

#[cfg(test)]
mod tests;
