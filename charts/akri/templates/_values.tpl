{{/*
The values that all templates read: those of the user, with the defaults of handlers, and
with the keys of Akri's own chart translated.
*/}}
{{- define "akri.values" -}}
{{- $values := deepCopy (omit .Values "global") }}
{{- $defaults := .Files.Get "files/handler.yaml" | fromYaml }}
{{- range $key, $handler := $values.handlers }}
{{- if and (has $key (list "mdns" "onvif")) (not (hasKey $handler "hostNetwork")) }}
{{- if and $handler.enabled (eq $handler.kind "Deployment") }}
{{- fail (include "akri.hostNetwork" $key) }}
{{- end }}
{{- $_ := set $handler "hostNetwork" true }}
{{- end }}
{{- $_ := set $values.handlers $key (mergeOverwrite (deepCopy $defaults) $handler) }}
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
