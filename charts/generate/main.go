// Command generate writes the parts of the chart that have another source: custom
// resources, permissions, admission policies and monitoring from the manifests in config/,
// and the schema and the documentation of the values from their comments.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	config := flag.String("config", "../config", "directory of the manifests")
	chart := flag.String("chart", "akri", "directory of the chart")
	flag.Parse()
	if err := generate(*config, *chart); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func generate(config, chart string) error {
	if err := copyFiles(filepath.Join(config, "crd", "*.yaml"), filepath.Join(chart, "files", "crds")); err != nil {
		return err
	}
	monitoring := filepath.Join(chart, "files", "monitoring")
	for pattern, dir := range map[string]string{
		"rules.yaml": monitoring, "podmonitor.yaml": monitoring, "dashboards/*.json": filepath.Join(monitoring, "dashboards"),
	} {
		if err := copyFiles(filepath.Join(config, "monitoring", pattern), dir); err != nil {
			return err
		}
	}
	for _, t := range templates {
		text, err := t.render(config)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(chart, "templates", t.name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	values, err := readAll(chart)
	if err != nil {
		return err
	}
	if err := writeSchema(chart, values); err != nil {
		return err
	}
	return writeReadme(chart, values)
}

// copyFiles copies manifests, without those that are only for kustomize.
func copyFiles(pattern, dir string) error {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s: no files", pattern)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// A template is a file of the chart that is made from manifests.
type template struct {
	name    string
	sources []string
	// conditions are the values that an object needs, by its kind and name, or by its kind.
	// They are those of $values, to which keys of Akri's own chart are translated.
	conditions map[string]string
}

var templates = []template{
	{
		name:    "rbac.yaml",
		sources: []string{"rbac/controller.yaml", "rbac/agent.yaml", "rbac/people.yaml"},
		conditions: map[string]string{
			"ServiceAccount": "$values.parts",
			"ClusterRole":    "$values.rbac.enabled", "ClusterRoleBinding": "$values.rbac.enabled",
			"Role": "$values.rbac.enabled", "RoleBinding": "$values.rbac.enabled",
		},
	},
	{
		name:    "webhook-rbac.yaml",
		sources: []string{"webhook/rbac.yaml"},
		conditions: map[string]string{
			"ServiceAccount":     "$values.webhook.enabled",
			"ClusterRole":        "and $values.rbac.enabled $values.webhook.enabled",
			"ClusterRoleBinding": "and $values.rbac.enabled $values.webhook.enabled",
			// For the Secret with the certificate that the webhook issues itself.
			"Role":        `and $values.rbac.enabled $values.webhook.enabled (eq $values.certificates.provider "own")`,
			"RoleBinding": `and $values.rbac.enabled $values.webhook.enabled (eq $values.certificates.provider "own")`,
		},
	},
	{
		name:    "policies.yaml",
		sources: []string{"policy/agents.yaml", "policy/authors.yaml", "policy/instances.yaml", "policy/metadata.yaml", "policy/status.yaml"},
		conditions: map[string]string{
			"ValidatingAdmissionPolicy": "$values.parts", "ValidatingAdmissionPolicyBinding": "$values.parts",
		},
	},
}

const (
	header        = "{{- /* Generated from %s by \"make generate\". DO NOT EDIT. */}}\n"
	declareValues = "{{- $values := include \"akri.values\" . | fromYaml }}\n"
)

func (t *template) render(config string) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, header, "config/"+strings.Join(t.sources, ", config/"))
	if len(t.conditions) > 0 {
		out.WriteString(declareValues)
	}
	for _, source := range t.sources {
		data, err := os.ReadFile(filepath.Join(config, source))
		if err != nil {
			return "", err
		}
		for document := range strings.SplitSeq(string(data), "\n---\n") {
			document = strings.TrimSpace(strings.TrimPrefix(document, "---\n")) + "\n"
			text, err := t.object(document)
			if err != nil {
				return "", fmt.Errorf("%s: %w", source, err)
			}
			out.WriteString(text)
		}
	}
	return out.String(), nil
}

var (
	kindLine = regexp.MustCompile(`(?m)^kind: (\w+)$`)
	// A component's ServiceAccount may have another name.
	accountName    = regexp.MustCompile(`:akri-system:akri-(\w+)`)
	accountSubject = regexp.MustCompile(`(- kind: ServiceAccount\n  name: )akri-(\w+)`)
	aggregation    = regexp.MustCompile(`(rbac\.authorization\.k8s\.io/aggregate-to-(\w+)): "\w+"`)
	metadataLines  = regexp.MustCompile(`(?m)^metadata:\n  name: (\S+)\n(  namespace: \S+\n)?(  labels:\n)?`)
)

// accountTemplate is a ServiceAccount of a component.
const accountTemplate = `{{- with $values.%s.serviceAccount }}
{{- if .create }}
%s  {{- with .annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}
`

// object makes a template of a manifest. It works on the text, to keep the comments.
func (t *template) object(text string) (string, error) {
	if strings.Contains(text, "{{") {
		return "", errors.New("a manifest contains {{, which the chart would evaluate")
	}
	kind, metadata := kindLine.FindStringSubmatch(text), metadataLines.FindStringSubmatch(text)
	if kind == nil || metadata == nil {
		return "", fmt.Errorf("no kind, or metadata does not begin with the name and the namespace:\n%s", text)
	}
	labels := metadata[0]
	if metadata[3] == "" {
		labels += "  labels:\n"
	}
	labels += "    {{- include \"akri.labels\" $ | nindent 4 }}\n"
	text = strings.Replace(text, metadata[0], labels, 1)
	text = strings.ReplaceAll(text, "namespace: akri-system", "namespace: {{ $.Release.Namespace }}")
	text = accountName.ReplaceAllString(text, ":{{ $$.Release.Namespace }}:{{ $$values.$1.serviceAccount.name }}")
	text = accountSubject.ReplaceAllString(text, "$1{{ $$values.$2.serviceAccount.name }}")
	if kind[1] == "ServiceAccount" {
		text = strings.Replace(text, "  name: "+metadata[1], "  name: {{ .name }}", 1)
		text = fmt.Sprintf(accountTemplate, strings.TrimPrefix(metadata[1], "akri-"), text)
	}
	text = aggregation.ReplaceAllString(text, "$1: {{ $$values.rbac.aggregateClusterRoles.$2 | quote }}")
	text = "---\n" + text
	condition, found := t.conditions[kind[1]+"/"+metadata[1]]
	if !found {
		condition, found = t.conditions[kind[1]]
	}
	if found {
		text = "{{- if " + condition + " }}\n" + text + "{{- end }}\n"
	}
	return text, nil
}
