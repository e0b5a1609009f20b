//! The items that most tests of this program use.

pub(crate) use crate::{
    REAPED, Run, SHORT, binary, claim_path, end_of,
    guard::{ADMISSION, OWN, STUCK, is_guarded, of, one_is_stuck, own_pod},
    one_dead, one_dead_of_three, run, short, six_nodes, stuck_with_disk,
    support::{
        ControlPlane, Fresh, fresh, in_repository,
        installed::{
            ACCOUNT, DEFAULT, as_member, as_user, folder, is_set_to, kubeconfig_of, kubectl,
            kustomized, may, settings, settings_of, until,
        },
        objects::{
            all_commands, annotate, each, make, namespace, node_becomes, node_path, pod, pod_path,
            str_of,
        },
        program::{executable, run_with, shown},
        proxy::{MARKER, Proxy, Seen},
        samples::yaml,
    },
    uid, uid_of_entry, until_overdue,
};
pub(crate) use itertools::Itertools as _;
pub(crate) use serde_json::{Value, json};
pub(crate) use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Read,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
pub(crate) use tempfile::TempDir;
