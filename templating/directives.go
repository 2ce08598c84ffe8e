package templating

import (
	"slices"
	"strings"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating/readywhen"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Directives are what the annotations under akri.sh/ on a template say. They are
// taken off: a rendered object does not carry them.
type Directives struct {
	// When is the author's condition; empty: always. It held when the object was
	// rendered.
	When string
	// ForEach is the list that had one object made per element.
	ForEach ForEach
	// OnConflict is what to do when the object exists and is not ours.
	OnConflict OnConflict
	// DeletionPolicy is what becomes of the object when it is no longer wanted.
	DeletionPolicy DeletionPolicy
	// OnImmutable is what to do when a field that differs cannot be changed.
	OnImmutable OnImmutable
	// ReadyWhen judges the live object; nil: judge by its status conditions, as
	// kstatus does.
	ReadyWhen *readywhen.Condition
	// Once says not to make the object again when it has gone by itself, as a Job
	// with a TTL does. Another name makes another object.
	Once bool
	// LegacyLabels says that the object carries the labels that Akri gave it; see
	// package convert.
	LegacyLabels bool
}

// ForEach is the value of akri.sh/for-each.
type ForEach string

const (
	ForEachNode     ForEach = "NODES"     // with NODE bound
	ForEachInstance ForEach = "INSTANCES" // with INSTANCE bound; at configuration level
)

// OnConflict is the value of akri.sh/on-conflict.
type OnConflict string

const (
	ConflictFail OnConflict = "fail" // report it; the default
	ConflictTake OnConflict = "take" // make it ours
	ConflictSkip OnConflict = "skip" // leave it and be content
)

// DeletionPolicy is the value of akri.sh/deletion-policy.
type DeletionPolicy string

const (
	DeletionDelete DeletionPolicy = "delete" // the default
	DeletionOrphan DeletionPolicy = "orphan" // keep it, no longer ours
)

// OnImmutable is the value of akri.sh/on-immutable.
type OnImmutable string

const (
	ImmutableFail     OnImmutable = "fail"     // report it; the default of most kinds
	ImmutableRecreate OnImmutable = "recreate" // delete and make anew; the default of Pod and Job
)

// Keys of the annotations.
const (
	annotationWhen           = v0.Domain + "/when"
	annotationForEach        = v0.Domain + "/for-each"
	annotationOnConflict     = v0.Domain + "/on-conflict"
	annotationDeletionPolicy = v0.Domain + "/deletion-policy"
	annotationOnImmutable    = v0.Domain + "/on-immutable"
	annotationReadyWhen      = v0.Domain + "/ready-when"
	annotationOnce           = v0.Domain + "/once"
	annotationLegacyLabels   = v0.Domain + "/legacy-labels"
)

var directiveKeys = []string{
	annotationDeletionPolicy, annotationForEach, annotationLegacyLabels, annotationOnConflict,
	annotationOnImmutable, annotationOnce, annotationReadyWhen, annotationWhen,
}

// reservedPrefix begins the keys of labels and annotations that belong to Akri.
const reservedPrefix = v0.Domain + "/"

func reserved(key string) bool { return strings.HasPrefix(key, reservedPrefix) }

// directives reads what the annotations of a template say. The condition is
// compiled later, when it is known what for-each binds.
func (c *compiler) directives(kind schema.GroupVersionKind, annotations map[string]any) Directives {
	d := Directives{OnConflict: ConflictFail, DeletionPolicy: DeletionDelete, OnImmutable: ImmutableFail}
	if kind.Group == "" && kind.Kind == "Pod" || kind.Group == "batch" && kind.Kind == "Job" {
		d.OnImmutable = ImmutableRecreate
	}
	for _, key := range keysOf(annotations) {
		if !reserved(key) {
			continue
		}
		field := annotationsPath.with(Key(key))
		if !slices.Contains(directiveKeys, key) {
			c.report(field, faultf(-1, directiveHint(key), "annotations under %s are directives, and %s is none of them", reservedPrefix, quote(key, 63)))
			continue
		}
		value, is := annotations[key].(string)
		if !is || value == "" {
			c.report(field, faultf(-1, "quote the value: annotations are text", "a directive must be text, not %s", emptyOr(kindName(annotations[key]), value, is)))
			continue
		}
		switch key {
		case annotationWhen:
			d.When = value
		case annotationForEach:
			d.ForEach = ForEach(value)
			c.checkForEach(field, value)
		case annotationOnConflict:
			d.OnConflict = choice(c, field, value, ConflictFail, ConflictTake, ConflictSkip)
		case annotationDeletionPolicy:
			d.DeletionPolicy = choice(c, field, value, DeletionDelete, DeletionOrphan)
		case annotationOnImmutable:
			d.OnImmutable = choice(c, field, value, ImmutableFail, ImmutableRecreate)
		case annotationReadyWhen:
			d.ReadyWhen = c.readyWhen(field, value)
		case annotationOnce:
			d.Once = choice(c, field, value, "true", "false") == "true"
		case annotationLegacyLabels:
			d.LegacyLabels = choice(c, field, value, "true", "false") == "true"
		}
	}
	return d
}

func emptyOr(kind, value string, isText bool) string {
	if isText && value == "" {
		return "empty"
	}
	return kind
}

func directiveHint(key string) string {
	var words []string
	for _, directive := range directiveKeys {
		words = append(words, strings.TrimPrefix(directive, reservedPrefix))
	}
	if near := nearest(strings.TrimPrefix(key, reservedPrefix), words); near != "" {
		return "did you mean " + reservedPrefix + near + "?"
	}
	return "directives are " + strings.Join(directiveKeys, ", ")
}

func choice[T ~string](c *compiler, field Path, value string, allowed ...T) T {
	if slices.Contains(allowed, T(value)) {
		return T(value)
	}
	words := make([]string, len(allowed))
	for i, word := range allowed {
		words[i] = string(word)
	}
	hint := "write one of " + strings.Join(words, ", ")
	if strings.Contains(value, "{{") {
		hint += "; this directive takes no expression"
	}
	c.report(field, faultf(-1, hint, "%s is not a value of this directive", quote(value, 63)))
	return allowed[0]
}

func (c *compiler) checkForEach(field Path, value string) {
	switch {
	case value == string(ForEachNode):
		c.binds = bindsNode
	case value == string(ForEachInstance) && c.level == ConfigurationLevel:
		c.binds = bindsInstance
	case value == string(ForEachInstance):
		c.report(field, faultf(-1, "remove the annotation, or write NODES for one object per node",
			"templates in instanceBrokerResources are made for each Instance already"))
	default:
		words := "NODES"
		if c.level == ConfigurationLevel {
			words += " or INSTANCES"
		}
		c.report(field, faultf(-1, "write "+words+", without braces", "%s is not a list to make objects for", quote(value, 63)))
	}
}

func (c *compiler) readyWhen(field Path, value string) *readywhen.Condition {
	if strings.Contains(value, "{{") {
		c.report(field, faultf(-1, "write CEL over self, the live object, as in self.status.phase == 'Running'", "this directive takes no expression in braces"))
		return nil
	}
	condition, err := readywhen.Compile(value)
	if err != nil {
		c.report(field, faultf(-1, "write CEL over self, the live object, as in self.status.phase == 'Running'", "%w", err))
	}
	return condition
}

// condition compiles akri.sh/when.
func (c *compiler) condition(source string) *text {
	if source == "" {
		return nil
	}
	field := annotationsPath.with(Key(annotationWhen))
	t := c.text(field, source)
	if t != nil && t.whole == nil {
		c.report(field, faultf(-1, `write it as one expression: "{{ gt CAPACITY 1 }}"`, "%s is not one expression", quote(source, 63)))
		return nil
	}
	return t
}
