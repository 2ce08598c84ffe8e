{{/* Adds what is common: akri.add (list COMMON OWN), as YAML. Maps and lists are added up, and what has the same name, or mount path, is that of OWN; so are others, if it has them. */}}
{{- define "akri.add" -}}
{{- $sum := deepCopy (index . 1) }}
{{- range $key, $common := index . 0 }}
{{- $own := get $sum $key }}
{{- if not (hasKey $sum $key) }}
{{- $_ := set $sum $key $common }}
{{- else if and (kindIs "slice" $common) (kindIs "slice" $own) }}
{{- $taken := list }}
{{- range $own }}
{{- if kindIs "map" . }}
{{- $taken = append $taken (coalesce .mountPath .name) }}
{{- end }}
{{- end }}
{{- $kept := list }}
{{- range $common }}
{{- $id := "" }}
{{- if kindIs "map" . }}
{{- $id = coalesce .mountPath .name }}
{{- end }}
{{- if or (not $id) (not (has $id $taken)) }}
{{- $kept = append $kept . }}
{{- end }}
{{- end }}
{{- $_ := set $sum $key (concat $kept $own) }}
{{- else if and (kindIs "map" $common) (kindIs "map" $own) }}
{{- $_ := set $sum $key (mergeOverwrite (deepCopy $common) $own) }}
{{- end }}
{{- end }}
{{- toYaml $sum }}
{{- end }}

{{/*
A Deployment or DaemonSet: akri.workload (dict "root" ROOT "kind" KIND …), with the keys of akri.pod. All that users choose by the
keys of "pods" is here and there, once for all components.
*/}}
{{- define "akri.workload" -}}
{{- $own := .component }}
apiVersion: apps/v1
kind: {{ .kind }}
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    app.kubernetes.io/name: {{ .name }}
    {{- include "akri.labels" .root | nindent 4 }}
  {{- with $own.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- if eq .kind "Deployment" }}
  replicas: {{ $own.replicas }}
  {{- end }}
  {{- if ne (int $own.revisionHistoryLimit) 10 }}
  revisionHistoryLimit: {{ $own.revisionHistoryLimit }}
  {{- end }}
  selector:
    matchLabels:
      app.kubernetes.io/name: {{ .name }}
  {{- with $own.updateStrategy }}
  {{ ternary "strategy" "updateStrategy" (eq $.kind "Deployment") }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  template:
    {{- include "akri.pod" . | nindent 4 }}
{{- end }}

{{/*
A Pod with one container, as the template of what creates it: akri.pod (dict "values" VALUES "component" VALUES-OF-COMPONENT "name"
NAME "container" NAME "image" IMAGE "args" LIST), and what only some have: "account", the ServiceAccount; "asRoot"; "hostNetwork";
"pullPolicy", "env", "ports", "volumes", "mounts"; "ready" and "live", fields of the probes; "pod" and "more", fields of the Pod and the container.
*/}}
{{- define "akri.pod" -}}
{{- $own := .component }}
{{- $metrics := .values.metrics }}
{{- $annotations := dict }}
{{- range .ports }}
{{- if and (eq .name "metrics") $metrics.enabled (not (or $metrics.podMonitor.enabled $metrics.serviceMonitor.enabled)) }}
{{- $annotations = dict "prometheus.io/scrape" "true" "prometheus.io/port" (toString .containerPort) "prometheus.io/path" "/metrics" }}
{{- end }}
{{- end -}}
metadata:
  labels:
    app.kubernetes.io/name: {{ .name }}
    app.kubernetes.io/part-of: akri
    {{- with $own.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with mergeOverwrite $annotations (default dict $own.podAnnotations) }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- with .values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .account }}
  serviceAccountName: {{ .account }}
  {{- else }}
  automountServiceAccountToken: false
  {{- end }}
  {{- if .hostNetwork }}
  hostNetwork: true
  {{- end }}
  {{- with $own.dnsPolicy | default (ternary "ClusterFirstWithHostNet" "" (default false .hostNetwork)) }}
  dnsPolicy: {{ . }}
  {{- end }}
  {{- with .pod }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- range $key := list "affinity" "dnsConfig" "hostAliases" "nodeSelector" "priorityClassName" "runtimeClassName" "tolerations" }}
  {{- with get $own $key }}
  {{- dict $key . | toYaml | nindent 2 }}
  {{- end }}
  {{- end }}
  {{- with $own.topologySpreadConstraints }}
  topologySpreadConstraints:
  {{- range . }}
  {{- $selector := dict "labelSelector" (dict "matchLabels" (dict "app.kubernetes.io/name" $.name)) }}
  - {{ toYaml (merge (deepCopy .) $selector) | indent 4 | trim }}
  {{- end }}
  {{- end }}
  securityContext:
    {{- $user := ternary dict (dict "runAsNonRoot" true "runAsUser" 65532) (default false .asRoot) }}
    {{- $user = set $user "seccompProfile" (dict "type" "RuntimeDefault") }}
    {{- mergeOverwrite $user (default dict $own.podSecurityContext) | toYaml | nindent 4 }}
  containers:
  - name: {{ .container }}
    image: {{ .image }}
    {{- with ternary .pullPolicy .values.image.pullPolicy (hasKey . "pullPolicy") }}
    imagePullPolicy: {{ . }}
    {{- end }}
    {{- with .args }}
    args:
    {{- toYaml . | nindent 4 }}
    {{- end }}
    env:
    {{- /* Near the limit, the Go runtime collects garbage more often. */}}
    {{- $limit := dict "name" "GOMEMLIMIT" "valueFrom" (dict "resourceFieldRef" (dict "resource" "limits.memory")) }}
    {{- $names := list }}
    {{- range $own.env }}
    {{- $names = append $names .name }}
    {{- end }}
    {{- range append (default list .env) $limit }}
    {{- if not (has .name $names) }}
    - {{ toYaml . | indent 6 | trim }}
    {{- end }}
    {{- end }}
    {{- with $own.env }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- with .ports }}
    ports:
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- if .ready }}
    livenessProbe:
      {{- $live := dict "httpGet" (dict "path" "/healthz" "port" "probes") "periodSeconds" 20 }}
      {{- mergeOverwrite $live (default dict .live) $own.livenessProbe | toYaml | nindent 6 }}
    readinessProbe:
      {{- $ready := dict "httpGet" (dict "path" "/readyz" "port" "probes") }}
      {{- mergeOverwrite $ready .ready $own.readinessProbe | toYaml | nindent 6 }}
    {{- end }}
    {{- with .more }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    resources:
      {{- toYaml $own.resources | nindent 6 }}
    securityContext:
      {{- $context := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL")) }}
      {{- $context = mergeOverwrite $context (default dict $own.securityContext) }}
      {{- /* The API server refuses privileged containers that must not escalate. */}}
      {{- ternary (omit $context "allowPrivilegeEscalation") $context (default false $context.privileged) | toYaml | nindent 6 }}
    {{- with concat (default list .mounts) (default list $own.extraVolumeMounts) }}
    volumeMounts:
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with concat (default list .volumes) (default list $own.extraVolumes) }}
  volumes:
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/*
The Pod of a hook: akri.hookPod (dict "values" VALUES "root" ROOT "name" NAME "args" LIST …). It runs where the controller may run.
*/}}
{{- define "akri.hookPod" -}}
{{- $controller := .values.controller }}
{{- $own := pick $controller "nodeSelector" "tolerations" "podSecurityContext" "securityContext" "runtimeClassName" "env" }}
{{- $_ := set $own "resources" (dict "requests" (dict "cpu" "10m" "memory" "32Mi") "limits" (dict "memory" "128Mi")) }}
{{- $image := include "akri.image" (list .root .values "controller") }}
{{- $pod := dict "restartPolicy" "Never" }}
{{- include "akri.pod" (merge (dict "component" $own "account" .name "image" $image "pod" $pod "container" (first .args)) .) }}
{{- end }}

{{/* The annotations of an object that exists during events of the release: akri.hook (list EVENTS WEIGHT). */}}
{{- define "akri.hook" -}}
helm.sh/hook: {{ index . 0 }}
helm.sh/hook-weight: {{ index . 1 | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}

{{/* A PodDisruptionBudget: akri.disruption (list ROOT NAME BUDGET). */}}
{{- define "akri.disruption" -}}
{{- $name := index . 1 }}
{{- if (index . 2).enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  namespace: {{ (index . 0).Release.Namespace }}
  labels:
    {{- include "akri.labels" (index . 0) | nindent 4 }}
spec:
  maxUnavailable: {{ (index . 2).maxUnavailable }}
  # A replica that is not ready may always be evicted.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      app.kubernetes.io/name: {{ $name }}
{{- end }}
{{- end }}
