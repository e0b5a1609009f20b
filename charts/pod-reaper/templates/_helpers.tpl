{{- /* The name of the objects. A CronJob's is at most 52 characters long. */ -}}
{{- define "pod-reaper.name" -}}
{{- $name := .Values.fullnameOverride | default .Release.Name -}}
{{- if and (not .Values.fullnameOverride) (not (contains "pod-reaper" $name)) }}{{ $name = printf "%s-pod-reaper" (trunc 41 $name | trimSuffix "-") }}{{ end -}}
{{- trunc 52 $name | trimSuffix "-" -}}
{{- end -}}

{{- /* The values, with those that eager sets. */ -}}
{{- define "pod-reaper.eager" -}}
{{- if .Values.eager.enabled }}
{{- $_ := set .Values "schedule" "*/2 * * * *" }}
{{- $_ := set .Values "activeDeadlineSeconds" 110 }}
{{- $_ := set .Values "historyLimit" 15 }}
{{- $_ := set .Values "failedHistoryLimit" 9 }}
{{- end }}
{{- end -}}

{{- /* The name of the account. */ -}}
{{- define "pod-reaper.account" -}}
{{- .Values.serviceAccount.name | default (include "pod-reaper.name" .) -}}
{{- end -}}

{{- define "pod-reaper.labels" -}}
{{- with .Values.commonLabels }}
{{- toYaml . }}
{{ end -}}
app.kubernetes.io/name: pod-reaper
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "pod-reaper.metadata" -}}
name: {{ include "pod-reaper.name" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "pod-reaper.labels" . | nindent 2 }}
{{- end -}}

{{- /* Refuses values that are each in order, and cannot work together. */ -}}
{{- define "pod-reaper.check" -}}
{{- $options := .Values.options -}}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) -}}
{{- fail "serviceAccount.create=false needs serviceAccount.name, an account of this namespace" -}}
{{- end -}}
{{- /* An entry of a name that the chart sets would be there twice. */ -}}
{{- $set := dict -}}
{{- if .Values.guard.enabled }}{{ $_ := set $set "REQUIRE_GUARD" "guard.enabled" }}{{ end -}}
{{- if .Values.eager.enabled }}{{ $_ := set $set "DEADLINE" "eager.enabled" }}{{ end -}}
{{- range $option, $value := $options }}{{ $_ := set $set ($option | snakecase | upper) (printf "options.%s" $option) }}{{ end -}}
{{- range .Values.env -}}
{{- if hasKey $set .name }}{{ fail (printf "env may not set %s: use %s" .name (get $set .name)) }}{{ end -}}
{{- end -}}
{{- end -}}

{{- /* The alerts, for the CronJob of this release. */ -}}
{{- define "pod-reaper.alerts" -}}
{{- $name := include "pod-reaper.name" . -}}
{{- $text := .Files.Get "files/alerts.yaml" -}}
{{- range $label := list "cronjob" "owner_name" }}{{ $text = replace (printf "%s=\"pod-reaper\"" $label) (printf "%s=%q" $label $name) $text }}{{ end -}}
{{- $text = replace "cronjob: pod-reaper" (printf "cronjob: %s" $name) $text -}}
{{- $text = replace "CronJob pod-reaper" (printf "CronJob %s" $name) $text -}}
{{- $text = replace "namespace=\"pod-reaper\"" (printf "namespace=%q" .Release.Namespace) $text -}}
{{- $text = replace " -n pod-reaper " (printf " -n %s " .Release.Namespace) $text -}}
{{- (fromYaml $text).groups | toYaml }}
{{- end -}}

{{- /* The pod of a run, or of `helm test`. */ -}}
{{- define "pod-reaper.pod" -}}
restartPolicy: Never
serviceAccountName: {{ include "pod-reaper.account" .root }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if and .root.Values.priorityClassName (not .test) }}
priorityClassName: {{ .root.Values.priorityClassName }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
affinity:
  nodeAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      preference:
        matchExpressions:
        - {key: node-role.kubernetes.io/control-plane, operator: Exists}
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
      - matchExpressions:
        - {key: kubernetes.io/os, operator: In, values: [linux]}
        # No leaf node. cronjob/base/cronjob.yaml has the reasons.
        - {key: kosmos.io/node, operator: DoesNotExist}
        - {key: liqo.io/type, operator: NotIn, values: [virtual-node]}
        - {key: virtual-node.interlink/type, operator: DoesNotExist}
        - {key: k8s.aliyun.com/vnode, operator: DoesNotExist}
        - {key: node.kubernetes.io/instance-type, operator: NotIn, values: [eklet]}
        - {key: virtual-kubelet.koupleless.io/component, operator: NotIn, values: [vnode]}
        - {key: kwok.x-k8s.io/node, operator: NotIn, values: [fake]}
        - {key: type, operator: NotIn, values: [kwok, virtual-kubelet]}
        - {key: vcluster.loft.sh/fake-node, operator: NotIn, values: ["true"]}
        - {key: tenancy.x-k8s.io/virtualnode, operator: NotIn, values: ["true"]}
        - {key: virtual-kubelet.io/provider, operator: DoesNotExist}
        - {key: openyurt.io/is-edge-worker, operator: NotIn, values: ["true"]}
        - {key: eks.amazonaws.com/compute-type, operator: NotIn, values: [hybrid]}
        - {key: alibabacloud.com/is-edge-worker, operator: NotIn, values: ["true"]}
        - {key: superedge.io/node-edge, operator: NotIn, values: [enable]}
        {{- with .root.Values.architectures }}
        - {key: kubernetes.io/arch, operator: In, values: {{ toJson . }}}
        {{- end }}
        {{- with .root.Values.nodeAffinity }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  podAntiAffinity:
    # If the last run's pod hangs on a node that is not yet NotReady, the next would hang there too.
    preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            app.kubernetes.io/name: pod-reaper
{{- with .root.Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
- name: pod-reaper
  {{- with .root.Values.image }}
  image: {{ with .registry }}{{ . }}/{{ end }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.root.Chart.AppVersion }}{{ end }}
  imagePullPolicy: {{ .pullPolicy }}
  {{- end }}
  {{- with .args }}
  args: {{ toJson . }}
  {{- end }}
  env:
  {{- range $option, $value := .root.Values.options }}
  - {name: {{ $option | snakecase | upper }}, value: {{ $value | quote }}}
  {{- end }}
  {{- if .root.Values.eager.enabled }}
  - {name: DEADLINE, value: 90s}
  {{- end }}
  - name: POD_NAME
    valueFrom: {fieldRef: {fieldPath: metadata.name}}
  - name: POD_NAMESPACE
    valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
  {{- if and .root.Values.guard.enabled (not .test) }}
  - {name: REQUIRE_GUARD, value: "true"}
  {{- end }}
  {{- with .root.Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  # Puts the end of the report into the status of a failed pod, where it outlives the log.
  terminationMessagePolicy: FallbackToLogsOnError
  {{- with .root.Values.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
  volumeMounts:
  - {name: token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
  {{- with .root.Values.volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
volumes:
- name: token
  projected:
    sources:
    - serviceAccountToken: {path: token, expirationSeconds: 600}
    - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
    - downwardAPI: {items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]}
{{- with .root.Values.volumes }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end -}}
