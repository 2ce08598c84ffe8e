{{/*
Fails if the controller of the original Akri runs where Akri's own chart installs it: two
controllers replace each other's objects. Without a cluster, it finds none.
*/}}
{{- define "akri.originalGuard" -}}
{{- range uniq (list .Release.Namespace "default") }}
{{- $deployment := lookup "apps/v1" "Deployment" . "akri-controller-deployment" }}
{{- if and $deployment (gt (int $deployment.spec.replicas) 0) $.Values.crds.guard }}
{{- $message := list (printf "the controller of the original Akri runs: Deployment akri-controller-deployment in the namespace %s." .) }}
{{- $message = append $message "Two controllers replace each other's objects, and upgrading its release would delete Configurations that the values lack." }}
{{- $message = append $message "To take over its objects without a restart of brokers, follow docs/migrate-from-akri.md. It begins with" }}
{{- $message = append $message "\n\n  kubectl akri migrate check" }}
{{- fail (join " " $message) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Fails if the source of the chart is installed as it is: no registry has its images. Without a cluster, it finds none. */}}
{{- define "akri.sourceGuard" -}}
{{- $image := .Values.image }}
{{- if and (eq .Chart.AppVersion "dev") (not $image.tag) (not $image.digests.controller) (lookup "v1" "Namespace" "" "kube-system") }}
{{- $message := "image.tag: this is the source of the chart: its images have the tag dev, which no registry has." }}
{{- fail (printf "%s Install what \"make chart REGISTRY=HOST/PATH\" writes, or set image.tag and image.registry" $message) }}
{{- end }}
{{- end }}

{{/*
Fails if a CustomResourceDefinition exists that does not belong to this release, such as
that of Akri's own chart: akri.crdGuard (list ROOT NAME). Without a cluster, it finds none.
*/}}
{{- define "akri.crdGuard" -}}
{{- $root := index . 0 }}
{{- $name := index . 1 }}
{{- $release := $root.Release }}
{{- $crd := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $name }}
{{- if and $crd $root.Values.crds.guard }}
{{- $owner := get (default dict $crd.metadata.annotations) "meta.helm.sh/release-name" }}
{{- $namespace := get (default dict $crd.metadata.annotations) "meta.helm.sh/release-namespace" }}
{{- if or (ne $owner $release.Name) (ne $namespace $release.Namespace) }}
{{- $message := list (printf "crds: %s exists, but does not belong to the release %s" $name $release.Name) }}
{{- $message = append $message "in this namespace. Its objects stay as they are if this release takes it over. To do so, run" }}
{{- $message = append $message "\n\n  kubectl label crd configurations.akri.sh instances.akri.sh app.kubernetes.io/managed-by=Helm --overwrite" }}
{{- $message = append $message "\n  kubectl annotate crd configurations.akri.sh instances.akri.sh --overwrite" }}
{{- $message = append $message (printf "meta.helm.sh/release-name=%s meta.helm.sh/release-namespace=%s" $release.Name $release.Namespace) }}
{{- $message = append $message "\n\nand repeat this command, with --force-conflicts if another tool has created it. Or use --set crds.enabled=false to leave it to its owner." }}
{{- fail (join " " $message) }}
{{- end }}
{{- end }}
{{- end }}

{{/*
"true" if the Configurations in the values cannot be objects of this revision: a hook creates
them after it, and the next revision has them. Helm finds the kinds of all objects before it
creates the first, so a release cannot create a kind and objects of this kind at once; and the
webhook, which must review Configurations, does not run before the release is installed. Without
a cluster it is "false".
*/}}
{{- define "akri.deferConfigurations" -}}
{{- $webhook := (include "akri.values" . | fromYaml).webhook }}
{{- $cluster := lookup "v1" "Namespace" "" "kube-system" }}
{{- $served := .Capabilities.APIVersions.Has "akri.sh/v0" }}
{{- $reviewed := and $webhook.enabled (eq $webhook.failurePolicy "Fail") }}
{{- and (not (empty $cluster)) (or (not $served) (and .Release.IsInstall $reviewed)) }}
{{- end }}
