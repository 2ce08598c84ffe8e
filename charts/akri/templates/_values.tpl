{{/*
The values that all templates read, as YAML: those of the user, with what components have in common, the defaults of handlers, and
the keys of Akri's own chart translated. They are computed once, which is most of the work of rendering.
*/}}
{{- define "akri.values" -}}
{{- if not (hasKey .Values "computed") }}
{{- $_ := set .Values "computed" (include "akri.computedValues" .) }}
{{- end }}
{{- .Values.computed }}
{{- end }}

{{- define "akri.computedValues" -}}
{{- $values := deepCopy (omit .Values "global") }}
{{- with .Values.global.imageRegistry }}
{{- $_ := set $values.image "registry" . }}
{{- end }}
{{- range .Values.global.imagePullSecrets }}
{{- $secret := ternary . (dict "name" .) (kindIs "map" .) }}
{{- $_ := set $values.image "pullSecrets" (append $values.image.pullSecrets $secret | uniq) }}
{{- end }}
{{- if or $values.metrics.podMonitor.enabled $values.metrics.serviceMonitor.enabled }}
{{- $_ := set $values.metrics "enabled" true }}
{{- end }}
{{- range $key := list "controller" "webhook" "agent" }}
{{- $_ := set $values $key (include "akri.add" (list $values.pods (get $values $key)) | fromYaml) }}
{{- end }}
{{- $defaults := .Files.Get "files/handler.yaml" | fromYaml }}
{{- range $key, $own := $values.handlers }}
{{- $handler := include "akri.add" (list (merge (deepCopy $defaults) $values.pods) $own) | fromYaml }}
{{- if and (has $key (list "mdns" "onvif")) (not (hasKey $own "hostNetwork")) }}
{{- if and $handler.enabled (eq $handler.kind "Deployment") }}
{{- fail (include "akri.hostNetwork" $key) }}
{{- end }}
{{- $_ := set $handler "hostNetwork" true }}
{{- end }}
{{- $_ := set $values.handlers $key $handler }}
{{- end }}
{{- include "akri.gone" . }}
{{- $old := .Files.Get "files/akri.yaml" | fromYaml }}
{{- $akri := mergeOverwrite (deepCopy $old) (deepCopy (omit .Values "global")) }}
{{- include "akri.oldAgent" (list $values $akri) }}
{{- include "akri.oldDeployments" (list $values $akri $old) }}
{{- include "akri.oldHandlers" (list $values $akri $old) }}
{{- range $key := list "debugEcho" "udev" "onvif" "opcua" "custom" }}
{{- $configuration := (get $akri $key).configuration }}
{{- if $configuration.enabled }}
{{- $spec := include "akri.oldSpec" (list $key $configuration $akri.imagePullSecrets) | fromYaml }}
{{- $_ := set $values "configurations" (append $values.configurations (dict "name" $configuration.name "spec" $spec)) }}
{{- end }}
{{- end }}
{{- $parts := or $values.controller.enabled $values.webhook.enabled $values.agent.enabled $akri.custom.discovery.enabled }}
{{- range $values.handlers }}
{{- $parts = or $parts .enabled }}
{{- end }}
{{- if and (not $parts) (or $values.configurations $values.extraObjects) }}
{{- /* A second release, whose Configurations another one serves. */}}
{{- $_ := set $values.rbac "enabled" false }}
{{- $_ := set $values.hooks "enabled" false }}
{{- $_ := set $values.crds "enabled" (not $values.crds.keep) }}
{{- end }}
{{- $_ := set $values "parts" (or (not (not $parts)) $values.crds.enabled) }}
{{- toYaml $values }}
{{- end }}

{{/* What a Deployment of a handler that uses multicast must say: akri.hostNetwork KEY. */}}
{{- define "akri.hostNetwork" -}}
handlers.{{ . }}.hostNetwork: say false or true for a Deployment. With false, only agents may call the handler, and no multicast
reaches it{{ if eq . "onvif" }}, so that Configurations must list addresses{{ end }}. With true, multicast works on its node, but no NetworkPolicy applies: everybody who
reaches the node can call the handler at port 10000, without authentication. See docs/security.md.
{{- end }}

{{/* A Configuration of the values: akri.configuration (list ROOT CONFIGURATION ANNOTATIONS). */}}
{{- define "akri.configuration" -}}
{{- $root := index . 0 }}
{{- $wave := dict "argocd.argoproj.io/sync-wave" "1" }}
apiVersion: akri.sh/v0
kind: Configuration
metadata:
  name: {{ (index . 1).name }}
  namespace: {{ default $root.Release.Namespace (index . 1).namespace }}
  labels:
    {{- mergeOverwrite (include "akri.labels" $root | fromYaml) (default dict (index . 1).labels) | toYaml | nindent 4 }}
  annotations:
    {{- /* Argo CD creates it when the webhook, which reviews it, runs. */}}
    {{- mergeOverwrite $wave (default dict (index . 1).annotations) (index . 2) | toYaml | nindent 4 }}
spec:
  {{- toYaml (index . 1).spec | nindent 2 }}
{{- end }}
