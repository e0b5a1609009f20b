//! The answer for a person. What would be lost, or need a person, comes last, because that stays on the screen.

use anstyle::Style;

use super::{Fate, PodFate, WhatIf};
use crate::questions::Judgement;
use crate::report::phrases::counted;
use crate::report::text::{BAD, CAUTION, DETAIL, GOOD, HEADING, ITEM, Page, QUIET, Screen};

pub(super) fn write(answer: &WhatIf, screen: Screen) -> String {
    let mut page = Page {
        text: String::new(),
        screen,
    };
    title(&mut page, answer);
    breaker(&mut page, answer);
    pods(
        &mut page,
        answer,
        Fate::Stays,
        QUIET,
        "STAY ON THE NODE, never evicted",
    );
    pods(&mut page, answer, Fate::Finished, QUIET, "FINISHED ALREADY");
    pods(
        &mut page,
        answer,
        Fate::ComesBack,
        GOOD,
        "COME BACK BY THEMSELVES, once reaped",
    );
    pods(
        &mut page,
        answer,
        Fate::LeftTerminating,
        CAUTION,
        "STAY TERMINATING",
    );
    if answer.left_out > 0 {
        page.heading(CAUTION, &format!("NOT REAPED: {}", answer.left_out));
        let says = "These pods are in namespaces that the namespace options leave out. They would be evicted and stay \
                    Terminating.";
        page.paragraph(ITEM, ITEM, Style::new(), says);
    }
    if !answer.workloads.is_empty() {
        page.heading(
            BAD,
            &format!("NO SECOND REPLICA ANYWHERE: {}", answer.workloads.len()),
        );
        for workload in &answer.workloads {
            let replicas = match workload.replicas {
                1 => "its only replica is here".to_owned(),
                replicas => format!("all {replicas} running replicas are here"),
            };
            let says = format!(
                "{}  {}/{}  {replicas}",
                workload.namespace, workload.kind, workload.name
            );
            page.paragraph(ITEM, DETAIL, Style::new(), &says);
        }
    }
    pods(
        &mut page,
        answer,
        Fate::Lost,
        BAD,
        "LOST: no controller creates these again",
    );
    pods(&mut page, answer, Fate::NeedsPerson, BAD, "WOULD NEED YOU");
    page.unread(&answer.errors, &answer.unseen);
    summary(&mut page, answer);
    page.text
}

fn title(page: &mut Page, answer: &WhatIf) {
    let source = answer
        .snapshot
        .as_ref()
        .map(|file| format!("by {file}, "))
        .unwrap_or_default();
    let (version, nodes) = (answer.program_version, answer.nodes.join(", "));
    let judged_at = answer.judged_at.strftime("%F %TZ");
    let title = format!("pod-reaper {version}: what if {nodes} died? {source}as of {judged_at}");
    page.paragraph("", "", HEADING, &title);
    let supposed = "Assumed: the kubelet is silent for longer than every toleration, grace period and threshold. \
                    Whether the scheduler then finds another node for the pods is not checked. Nothing was changed.";
    page.paragraph("", "", QUIET, supposed);
}

fn breaker(page: &mut Page, answer: &WhatIf) {
    let count = match answer.nodes_not_ready {
        Some(not_ready) => format!(
            "{not_ready} of {} nodes would be NotReady",
            answer.nodes_total
        ),
        None => format!(
            "It could not be read how many of {} nodes would be NotReady",
            answer.nodes_total
        ),
    };
    match &answer.breaker {
        Some(breaker) => {
            page.heading(
                BAD,
                &format!("THE BREAKER WOULD HOLD THE RUN ({})", breaker.reason),
            );
            let says = format!(
                "{}. {} to reap would wait until that changes, or until a person who knows that the nodes are dead \
                 runs it with --max-not-ready-percent=100. The lines below say what happens then.",
                breaker.detail,
                counted(breaker.held, "pod", "pods")
            );
            page.paragraph(ITEM, ITEM, Style::new(), &says);
        }
        None => page.heading(
            HEADING,
            &format!("{count}: the breaker would not hold the run."),
        ),
    }
    if answer.kubernetes_stops_evicting {
        let says = format!(
            "{count}. In a zone where more than 2 nodes and at least 55 % are NotReady, Kubernetes evicts slowly, or not at \
             all where the zone has up to 50 nodes. Pods there may not become Terminating. A zone that is dead as a \
             whole, beside healthy ones, is evicted at full speed."
        );
        page.paragraph(ITEM, ITEM, CAUTION, &says);
    }
}

fn pods(page: &mut Page, answer: &WhatIf, fate: Fate, style: Style, heading: &str) {
    let pods = answer
        .pods
        .iter()
        .filter(|pod| pod.fate == fate)
        .collect::<Vec<_>>();
    if pods.is_empty() {
        return;
    }
    page.heading(style, &format!("{heading}: {}", pods.len()));
    if fate == Fate::NeedsPerson {
        let says = "The commands for that are in the report of the real run, with the names and UIDs of that moment.";
        page.paragraph(ITEM, ITEM, CAUTION, says);
    }
    for each in pods {
        pod(page, each, answer.nodes.len() > 1);
    }
}

fn pod(page: &mut Page, pod: &PodFate, many_nodes: bool) {
    let mut says = vec![format!("{}/{}", pod.namespace, pod.name)];
    says.extend(
        pod.owner
            .as_ref()
            .map(|owner| format!("{}/{}", owner.kind, owner.name)),
    );
    says.extend(many_nodes.then(|| format!("on {}", pod.node)));
    let explained = matches!(pod.fate, Fate::NeedsPerson | Fate::LeftTerminating);
    let Judgement {
        reason,
        detail,
        note,
        risk,
        steps,
        ..
    } = &pod.judgement;
    says.extend(
        reason
            .filter(|_| explained)
            .map(|reason| format!("[{reason}]")),
    );
    page.paragraph(ITEM, DETAIL, Style::new(), &says.join("  "));
    if explained || pod.fate == Fate::Stays {
        page.paragraph(DETAIL, DETAIL, QUIET, detail);
    }
    page.advice(DETAIL, [("Note", note), ("Risk", risk)], steps);
}

fn summary(page: &mut Page, answer: &WhatIf) {
    let words = [
        (Fate::ComesBack, "comes back", "come back"),
        (Fate::Lost, "is lost", "are lost"),
        (Fate::NeedsPerson, "needs you", "need you"),
        (
            Fate::LeftTerminating,
            "stays Terminating",
            "stay Terminating",
        ),
        (Fate::Stays, "stays", "stay"),
        (Fate::Finished, "has finished", "have finished"),
    ];
    let parts = words.into_iter().filter_map(|(fate, one, many)| {
        let count = answer.summary.get(&fate).copied().unwrap_or_default();
        (count > 0).then(|| counted(count, one, many))
    });
    let parts = parts.collect::<Vec<_>>();
    let says = if parts.is_empty() {
        "no pod is there".to_owned()
    } else {
        parts.join(", ")
    };
    page.text.push('\n');
    page.paragraph(
        "",
        "",
        HEADING,
        &format!("Summary: {says}. Exit code {}.", answer.exit.code()),
    );
}
