{{/* What a handler mounts, as {volumes, mounts}: akri.handlerVolumes (list KEY VALUES). */}}
{{- define "akri.handlerVolumes" -}}
{{- $key := index . 0 }}
{{- $values := index . 1 }}
{{- $handler := get $values.handlers $key }}
{{- $volumes := list }}
{{- $mounts := list }}
{{- if eq $handler.kind "DaemonSet" }}
{{- $dir := trimSuffix "/" $values.agent.handlersDir }}
{{- $volumes = append $volumes (dict "name" "handlers" "hostPath" (dict "path" $dir "type" "DirectoryOrCreate")) }}
{{- $mounts = append $mounts (dict "name" "handlers" "mountPath" "/var/lib/akri") }}
{{- $own := include "akri.ownVolumes" (list $key $values) | fromYaml }}
{{- $volumes = concat $volumes $own.volumes }}
{{- $mounts = concat $mounts $own.mounts }}
{{- end }}
{{- dict "volumes" $volumes "mounts" $mounts | toYaml }}
{{- end }}

{{/* What one of the handlers needs of the node, as {volumes, mounts}: akri.ownVolumes (list KEY VALUES). */}}
{{- define "akri.ownVolumes" -}}
{{- $key := index . 0 }}
{{- $values := index . 1 }}
{{- $volumes := list }}
{{- $mounts := list }}
{{- if eq $key "udev" }}
{{- /* The database of udevd. Empty on nodes without udevd. */}}
{{- $volumes = append $volumes (dict "name" "udev" "hostPath" (dict "path" $values.handlers.udev.udevDir "type" "DirectoryOrCreate")) }}
{{- $mounts = append $mounts (dict "name" "udev" "mountPath" "/run/udev" "readOnly" true) }}
{{- else if eq $key "debugEcho" }}
{{- /* Contains debug-echo-availability.txt: "OFFLINE" in it makes the devices disappear. */}}
{{- $echo := dict "path" (printf "%s/debug-echo" (trimSuffix "/" $values.agent.handlersDir)) "type" "DirectoryOrCreate" }}
{{- $volumes = append $volumes (dict "name" "availability" "hostPath" $echo) }}
{{- $mounts = append $mounts (dict "name" "availability" "mountPath" "/tmp") }}
{{- end }}
{{- dict "volumes" $volumes "mounts" $mounts | toYaml }}
{{- end }}

{{/* What the handlers in the agents' process need of the node, as {volumes, mounts}: akri.embeddedVolumes VALUES. */}}
{{- define "akri.embeddedVolumes" -}}
{{- $volumes := list }}
{{- $mounts := list }}
{{- range $key := .agent.embeddedHandlers }}
{{- if not (has $key (list "debugEcho" "onvif" "opcua" "udev")) }}
{{- fail (printf "agent.embeddedHandlers: %q is not a handler that agents can run: use debugEcho, onvif, opcua, udev, and handlers.%s.enabled for others" $key $key) }}
{{- end }}
{{- $own := include "akri.ownVolumes" (list $key $) | fromYaml }}
{{- $volumes = concat $volumes $own.volumes }}
{{- $mounts = concat $mounts $own.mounts }}
{{- end }}
{{- dict "volumes" $volumes "mounts" $mounts | toYaml }}
{{- end }}

{{/* Whether the agents use the host network, as "true" or "false": akri.agentOnHost VALUES. */}}
{{- define "akri.agentOnHost" -}}
{{- has "onvif" .agent.embeddedHandlers }}
{{- end }}

{{/* Fails if arguments change the ports behind the chart's back: akri.namedPorts (list KEY ARGS). */}}
{{- define "akri.namedPorts" -}}
{{- range index . 1 }}
{{- if hasPrefix "--metrics-bind-address" . }}
{{- fail (printf "%[1]s.args: use %[1]s.metricsPort and metrics.enabled instead of %[2]s: the Pod names the port" (index $ 0) .) }}
{{- end }}
{{- if hasPrefix "--health-probe-bind-address" . }}
{{- fail (printf "%[1]s.args: use %[1]s.probesPort instead of %[2]s: the Pod names the port" (index $ 0) .) }}
{{- end }}
{{- end }}
{{- end }}

{{/*
Where a program serves metrics, which are not authenticated: only in its Pod, unless they
are to be scraped: akri.metricsAddress (list VALUES PORT).
*/}}
{{- define "akri.metricsAddress" -}}
{{- if not (index . 0).metrics.enabled }}127.0.0.1{{ end }}:{{ index . 1 }}
{{- end }}

{{/* Fails if the program already uses its port for metrics otherwise: akri.freePort (list KEY PORT TAKEN...). */}}
{{- define "akri.freePort" -}}
{{- range slice . 2 }}
{{- if eq (int .) (int (index $ 1)) }}
{{- fail (printf "%s.metricsPort: the program uses port %v for something else: choose another" (index $ 0) .) }}
{{- end }}
{{- end }}
{{- end }}

{{/* The agents' arguments, as a YAML list: akri.agentArgs (list ROOT VALUES METRICS-PORT PROBES-PORT). */}}
{{- define "akri.agentArgs" -}}
{{- $root := index . 0 }}
{{- $values := index . 1 }}
{{- $metrics := index . 2 }}
{{- $probes := index . 3 }}
{{- $args := list }}
{{- $onHost := include "akri.agentOnHost" $values | eq "true" }}
{{- with $values.agent.embeddedHandlers }}
{{- $args = append $args (printf "--embedded-handlers=%s" (join "," .)) }}
{{- end }}
{{- include "akri.freePort" (list "agent" $metrics $probes) }}
{{- $args = append $args (printf "--metrics-bind-address=%s" (include "akri.metricsAddress" (list $values $metrics))) }}
{{- if ne $probes 8081 }}
{{- $args = append $args (printf "--health-probe-bind-address=:%d" $probes) }}
{{- end }}
{{- $static := $values.agent.staticHandlers }}
{{- range $key, $handler := $values.handlers }}
{{- if and $handler.enabled (eq $handler.kind "Deployment") }}
{{- if not $values.agent.networkHandlers }}
{{- fail (printf "handlers.%s.kind: agents connect to a Deployment only in the ranges in agent.networkHandlers: set it to the range of the cluster's Services, for example --set agent.networkHandlers={10.96.0.0/12}" $key) }}
{{- end }}
{{- if $onHost }}
{{- fail (printf "agent.embeddedHandlers: with onvif, agents use the host network, from which the NetworkPolicy of handlers.%s admits nobody: run onvif with handlers.onvif.enabled instead" $key) }}
{{- end }}
{{- $service := printf "%s.%s.svc:10000" (include "akri.handlerObject" $key) $root.Release.Namespace }}
{{- $static = append $static (printf "%s=%s+shared" (default $key $handler.name) $service) }}
{{- end }}
{{- end }}
{{- with $static }}
{{- $args = append $args (printf "--static-handlers=%s" (join "," .)) }}
{{- end }}
{{- with $values.agent.networkHandlers }}
{{- $args = append $args (printf "--allow-network-handlers=%s" (join "," .)) }}
{{- end }}
{{- if $values.agent.crossNamespaceProperties }}
{{- $args = append $args "--allow-cross-namespace-properties" }}
{{- end }}
{{- include "akri.namedPorts" (list "agent" $values.agent.args) }}
{{- concat $args $values.agent.args | toYaml }}
{{- end }}
