//! Tests of the time that a grace period adds to a forecast.

use serde_json::json;

use super::tests::{cluster, foretold, running};
use crate::report::samples::audit;

/// `RabbitMQ`'s operator gives its pods a grace period of a week.
#[test]
fn a_weeks_grace_is_waited_for_only_on_a_node_without_a_lease() {
    let week = 604_800;
    let mut objects = cluster();
    objects.retain(|object| object["kind"] != "Pod");
    objects.push(running(
        "rabbit-0",
        "f",
        json!({"spec": {"terminationGracePeriodSeconds": week}}),
    ));
    let seconds = |objects: &[_]| foretold(&audit(), objects).whole.seconds;
    assert_eq!(seconds(&objects), 300 + 600);
    objects.retain(|object| object["kind"] != "Lease" || object["metadata"]["name"] != "f");
    assert_eq!(seconds(&objects), 300 + week + 600);
}
