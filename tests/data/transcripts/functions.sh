# What the commands of the transcripts have in common. Bash reads it before each of them.

# An audit of the Kosmos leaf node whose link is cut, at the time when that was saved.
audit() { pod-reaper --snapshot kosmos-link-cut.json --now 2026-11-20T22:00:36Z "$@"; }
# The same at a terminal.
terminal() { TERM=xterm script -qec 'pod-reaper --snapshot kosmos-link-cut.json --now 2026-11-20T22:00:36Z --reap-older-than=3s' /dev/null < /dev/null; }
# A question about the six nodes, or an audit of them.
six() { pod-reaper "$@" --snapshot six-nodes.json; }
# A setting of the report, and the log of the six nodes without its times.
setting() { local name=$1; shift; LOG_LEVEL=off audit --output=JSON "$@" | tr -d ' \n' | grep -o "\"$name\":\(\[[^]]*\]\|[^,}]*\)"; }
logged() { six "$@" 2>&1 >report | sed 's/^[^ ]* *//'; }

# A run with the kubeconfig `good`, changed by sed.
changed() { sed "$1" good > changed; pod-reaper --yes --kubeconfig changed; }

# What the chart renders with these values, and which of its notes say what they may not achieve.
template() { helm template night-shift charts/pod-reaper --namespace=ops --set "$1"; }
notes() { helm install night-shift charts/pod-reaper --dry-run=client --set "image.repository=registry.example.com/pod-reaper,$1" | sed '1,/^NOTES:/d' | grep -e WARNING -e 'deletes nothing'; }
secret='env[0].valueFrom.secretKeyRef.name=a,env[0].valueFrom.secretKeyRef.key=b'
