package attacks

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// user sends requests as one user.
type user struct {
	w      *world
	name   string
	header http.Header
}

// rule is an RBAC rule: verbs on resources of a group, separated by commas.
type rule struct{ group, resources, verbs string }

// configurationsOnly is the right to write Configurations, and nothing else.
var configurationsOnly = rule{"akri.sh", "configurations", "get,list,watch,create,update,patch,delete"}

// writes are the rights that admission asks of the author of a template.
func writes(group, resources string) rule { return rule{group, resources, "create,patch,delete"} }

// impersonate returns a user, with further fields of the user's information.
func (w *world) impersonate(name string, extra map[string]string, groups ...string) *user {
	header := http.Header{"Impersonate-User": {name}}
	for _, group := range append([]string{"system:authenticated"}, groups...) {
		header.Add("Impersonate-Group", group)
	}
	for key, value := range extra {
		header[http.CanonicalHeaderKey("Impersonate-Extra-"+url.PathEscape(key))] = []string{value}
	}
	return &user{w: w, name: name, header: header}
}

// as returns a new user who has only these rights, in the test's namespace.
func (w *world) as(name string, rules ...rule) *user {
	w.t.Helper()
	u := w.impersonate(name+"-"+w.namespace, nil)
	w.grant(u, w.namespace, rules...)
	return u
}

// grant gives a user rights in a namespace, and waits until they count.
func (w *world) grant(u *user, namespace string, rules ...rule) {
	w.t.Helper()
	role := object{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
		"metadata": map[string]any{"name": u.name, "namespace": namespace}, "rules": rulesOf(rules),
	}
	w.must(w.admin.apply(role))
	w.must(w.admin.apply(parse(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]q, namespace: %[2]q}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]q}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]q}]
`, u.name, namespace))))
	for _, r := range rules {
		w.eventually("the rights of "+u.name, func() string {
			resource, _, _ := strings.Cut(r.resources, ",")
			verb, _, _ := strings.Cut(r.verbs, ",")
			resource, subresource, _ := strings.Cut(resource, "/")
			review := w.must(u.create(object{
				"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
				"spec": map[string]any{"resourceAttributes": map[string]any{
					"namespace": namespace, "group": r.group, "resource": resource, "subresource": subresource, "verb": verb,
				}},
			}))
			if allowed, _ := review.object().at("status", "allowed").(bool); !allowed {
				return fmt.Sprintf("may not %s %s", verb, resource)
			}
			return ""
		})
	}
}

// rulesOf returns rules as a Role has them.
func rulesOf(rules []rule) []any {
	var all []any
	for _, r := range rules {
		all = append(all, map[string]any{
			"apiGroups": []string{r.group}, "resources": strings.Split(r.resources, ","), "verbs": strings.Split(r.verbs, ","),
		})
	}
	return all
}

// send sends a request as the user.
func (u *user) send(r request) answer {
	r.header = u.header
	return u.w.api.send(u.w.t.Context(), r)
}

// place returns the namespace of an object: its own, or that of the test.
func (u *user) place(o object) string {
	if namespace := o.namespace(); namespace != "" {
		return namespace
	}
	return u.w.namespace
}

// create creates an object.
func (u *user) create(o object, options ...string) answer {
	return u.send(request{
		method: http.MethodPost, path: pathOf(o.text("kind"), u.place(o), ""), query: queryOf(options),
		contentType: "application/json", body: o.json(),
	})
}

// apply applies an object by server-side apply. Options are pairs of the query.
func (u *user) apply(o object, options ...string) answer {
	query := queryOf(options)
	if query.Get("fieldManager") == "" {
		query.Set("fieldManager", "kubectl")
	}
	if query.Get("force") == "" {
		query.Set("force", "true")
	}
	return u.send(request{
		method: http.MethodPatch, path: pathOf(o.text("kind"), u.place(o), o.name()), query: query,
		contentType: "application/apply-patch+yaml", body: o.json(),
	})
}

func queryOf(options []string) url.Values {
	query := url.Values{}
	for i := 0; i+1 < len(options); i += 2 {
		query.Set(options[i], options[i+1])
	}
	return query
}

// patch sends a merge patch, in YAML, for an object or its subresource: KIND or
// KIND/SUBRESOURCE.
func (u *user) patch(what, namespace, name, patch string) answer {
	kindName, subresource, _ := strings.Cut(what, "/")
	path := pathOf(kindName, namespace, name)
	if subresource != "" {
		path += "/" + subresource
	}
	return u.send(request{
		method: http.MethodPatch, path: path, contentType: "application/merge-patch+json", body: parse(patch).json(),
	})
}

// get reads an object.
func (u *user) get(kindName, namespace, name string) answer {
	return u.send(request{method: http.MethodGet, path: pathOf(kindName, namespace, name)})
}

// delete deletes an object.
func (u *user) delete(kindName, namespace, name string) answer {
	return u.send(request{method: http.MethodDelete, path: pathOf(kindName, namespace, name)})
}
