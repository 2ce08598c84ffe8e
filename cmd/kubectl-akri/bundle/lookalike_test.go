package bundle

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestLookalikes checks fields whose names end like those of references: of a reference,
// only what says where a credential is stays.
func TestLookalikes(t *testing.T) {
	for name, text := range map[string]string{
		"a value in place of a path":     `passwordFile: PLANTED-1`,
		"a variable, too":                `env: [{name: PASSWORD_FILE, value: PLANTED-1}]`,
		"an argument, too":               `args: [--token-file, PLANTED-1, --password-path=PLANTED-2]`,
		"a value in place of a name":     `tokenName: PLANTED_1`,
		"one that could be a name":       `{tokenName: planted-9f86d081884c7d659a2feaa0c55ad015}`,
		"one in place of a type":         `{credentialType: PLANTED-1}`,
		"a number":                       `{passwordName: 99123456, tokenMode: "PLANTED-1 2"}`,
		"a further field of a reference": `{tokenRef: {name: kept, value: PLANTED-1}, secretKeyRef: {name: kept, key: kept, x: PLANTED-2}}`,
		"a list in a reference":          `passwordRef: [PLANTED-1, {value: PLANTED-2}]`,
		"a name in a credential":         `credentials: {name: PLANTED_1, file: PLANTED-2, kind: PLANTED-3}`,
		"a key of a cloud":               `credentials: {name: kept, key: PLANTED-1}`,
		"a random key":                   `secretKeyRef: {name: kept, key: planted1aaaabbbbccccdddd}`,
		"a value in valueFrom":           `env: [{name: API_KEY, valueFrom: {value: PLANTED-1}}, {name: TOKEN, valueFrom: PLANTED-2}]`,
		"a property's other fields":      `discoveryProperties: [{name: a, default: PLANTED-1, valueFrom: {inline: PLANTED-2}}, PLANTED-3]`,
		"properties that are no list":    `discoveryProperties: {any: PLANTED-1}`,
		"a pair of key and value":        `list: [{key: password, value: PLANTED-1}, {name: token, Content: PLANTED-2, values: [PLANTED-3]}]`,
		"data of a kind like Secret":     `{kind: ClusterSecret, data: {any: PLANTED-1}, binaryData: {any: PLANTED-2}}`,
		"stringData of any kind":         `{kind: "{{KIND}}", stringData: {any: PLANTED-1}}`,
		"a registry":                     `config: '{"auths": {"example.com": {"auth": "PLANTED-1"}}}'`,
		"a copy of an object":            `metadata: {annotations: {copy: '{"kind": "Secret", "data": {"any": "PLANTED-1"}}'}}`,
		"a compressed copy of an object": `metadata: {annotations: {objectset.rio.cattle.io/applied: PLANTED-1}}`,
		"a command in a shell":           `command: [sh, -c, "login --user kept --password PLANTED-1 && login -token 'PLANTED 2'"]`,
		"a document with a block":        `details: "password: |\n  PLANTED-1\n  PLANTED-2\nkept: 1"`,
		"a document with braces":         `details: "login: {user: kept, password: PLANTED-1}"`,
		"a document with a reference":    `details: "passwordRef:\n  value: PLANTED-1"`,
		"a document with a list":         `details: "tokens:\n- PLANTED-1\n- PLANTED-2\n"`,
		"a template with blocks":         `details: "{{if A}}\npassword:\n  - PLANTED-1\nx: {{B}}\ntoken: >-\n  PLANTED-2\n  PLANTED-3\n{{end}}"`,
		"a template with braces":         `details: "{{if A}}\nlogin: {user: kept, password: PLANTED-1}\n{{end}}"`,
	} {
		t.Run(name, func(t *testing.T) {
			var before map[string]any
			if err := yaml.Unmarshal([]byte(text), &before); err != nil {
				t.Fatal(err)
			}
			var r Redactor
			after, err := yaml.Marshal(r.Object(before))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(after); strings.Contains(strings.ToUpper(got), planted[:7]) || strings.Contains(got, "99123456") {
				t.Errorf("a credential is left:\n%s", got)
			}
			if got, want := strings.Count(string(after), "kept"), strings.Count(text, "kept"); got != want {
				t.Errorf("%d of %d others are left:\n%s", got, want, after)
			}
		})
	}
}

// pointers has what a report needs to say where a credential is.
const pointers = `
imagePullSecrets: [{name: registry-1}]
automountServiceAccountToken: false
secretName: "{{INSTANCE_NAME}}-login"
tls: {secretName: tls-1.example, credentialName: $(NAME)}
args: [--password-file, /run/a/password, --token-file=/run/b, --tls-secret-name, web]
env:
- {name: PASSWORD_FILE, value: /run/secrets/password}
- {name: PASSWORD, valueFrom: {secretKeyRef: {name: login, key: PASSWORD, optional: true}}}
- {name: TOKEN, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: status.podIP}}}
volumes:
- secret: {secretName: login, defaultMode: 420, items: [{key: password, path: password, mode: 256}]}
- projected: {sources: [{serviceAccountToken: {expirationSeconds: 3607}}]}
credentialsRef: {apiVersion: v1, kind: Secret, name: login, namespace: plant}
tolerations: [{key: secret-nodes, operator: Exists}]
message: "cannot read the secret: timeout"
report: "2 objects fail:\nSecret plant/login: is forbidden\nspec.secretRef.name: Required value"
discoveryProperties: [{name: device_credential, valueFrom: {secretKeyRef: {name: login, namespace: plant, key: a}}}]
`

// TestReferences checks that references stay, and that nothing of them is replaced elsewhere.
func TestReferences(t *testing.T) {
	var before map[string]any
	if err := yaml.Unmarshal([]byte(pointers), &before); err != nil {
		t.Fatal(err)
	}
	var r Redactor
	want, err := yaml.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	got, err := yaml.Marshal(r.Object(before))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if len(r.seen) > 0 {
		t.Errorf("%v would be replaced everywhere", r.seen)
	}
}
