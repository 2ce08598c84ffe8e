package templating

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/text"
	"akri.sh/akri/templating/internal/expr"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/value"
	"akri.sh/akri/templating/readywhen"
)

// Directives are the values of the annotations under akri.sh/ on a template. A
// rendered object does not have these annotations.
type Directives struct {
	// When is the author's condition; empty: always. It held when the object was
	// rendered.
	When string
	// ForEach is the list that has one rendered object per element.
	ForEach ForEach
	// OnConflict is what to do if the object exists and has another owner.
	OnConflict OnConflict
	// DeletionPolicy is what to do with the object when it is no longer rendered.
	DeletionPolicy DeletionPolicy
	// OnImmutable is what to do if a field that differs is immutable.
	OnImmutable OnImmutable
	// ReadyWhen evaluates the live object; nil: use its status conditions, as
	// kstatus does.
	ReadyWhen *readywhen.Condition
	// Once is set if the object is not created again after it was deleted by
	// another component, as a Job with a TTL is. An object with another name is
	// created.
	Once bool
	// LegacyLabels is set if the object has the labels of Akri's old fields; see
	// package convert.
	LegacyLabels bool
}

// ForEach is the value of akri.sh/for-each.
type ForEach string

// The values of for-each.
const (
	ForEachNode     ForEach = "NODES"     // with NODE bound
	ForEachInstance ForEach = "INSTANCES" // with INSTANCE bound; at configuration level
)

// OnConflict is the value of akri.sh/on-conflict.
type OnConflict string

// The values of on-conflict.
const (
	ConflictFail  OnConflict = "fail"  // report it; the default
	ConflictAdopt OnConflict = "adopt" // take over the object
	ConflictSkip  OnConflict = "skip"  // leave the object alone

	conflictTake OnConflict = "take" // an old name of adopt
)

// DeletionPolicy is the value of akri.sh/deletion-policy.
type DeletionPolicy string

// The values of deletion-policy.
const (
	DeletionDelete DeletionPolicy = "delete" // the default
	DeletionOrphan DeletionPolicy = "orphan" // keep the object, but stop managing it
)

// OnImmutable is the value of akri.sh/on-immutable.
type OnImmutable string

// The values of on-immutable.
const (
	ImmutableFail     OnImmutable = "fail"     // report it; the default of most kinds
	ImmutableRecreate OnImmutable = "recreate" // delete and create again; the default of Pod and Job
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

// isDirective reports whether a field is a directive and not part of the object.
func isDirective(field Path) bool {
	return len(field) == 3 && slices.Equal(field[:2], annotationsPath) && reserved(field[2].Key)
}

// directiveReader reads the directives of one template.
type directiveReader struct {
	*reporter
	binds binding
}

// readDirectives reads the annotations of a template. The condition is compiled
// later, because it depends on what for-each binds.
func readDirectives(r *reporter, kind schema.GroupVersionKind, source map[string]any) (Directives, binding) {
	d := Directives{OnConflict: ConflictFail, DeletionPolicy: DeletionDelete, OnImmutable: ImmutableFail}
	if kind.Group == "" && kind.Kind == "Pod" || kind.Group == "batch" && kind.Kind == "Job" {
		d.OnImmutable = ImmutableRecreate
	}
	reader := &directiveReader{reporter: r}
	annotations, _ := annotationsPath.Lookup(source).(map[string]any)
	for _, key := range value.Keys(annotations) {
		if reserved(key) {
			reader.read(&d, key, annotations[key])
		}
	}
	return d, reader.binds
}

// deviceWords matches variables whose value a device chooses.
var deviceWords = regexp.MustCompile(`\b(INSTANCE_PROPERTIES|INSTANCES|INSTANCE)\b`)

// ReadsDevice reports whether a text or key in a part of a template has an expression that
// may read what a device says of itself, such as its properties.
func ReadsDevice(part any) bool {
	return AnyText(part, func(written string) bool {
		return expr.Has(written) && deviceWords.MatchString(strings.ReplaceAll(written, "INSTANCE.name", ""))
	})
}

// AnyText reports whether one of the texts and keys in a part of a template satisfies a
// condition.
func AnyText(part any, satisfies func(string) bool) bool {
	switch part := part.(type) {
	case string:
		return satisfies(part)
	case []any:
		return slices.ContainsFunc(part, func(element any) bool { return AnyText(element, satisfies) })
	case map[string]any:
		for key, element := range part {
			if satisfies(key) || AnyText(element, satisfies) {
				return true
			}
		}
	}
	return false
}

// checkAdoption reports a template that adopts objects whose name depends on what a
// device says of itself: the device would decide which existing object is adopted.
func checkAdoption(r *reporter, d Directives, name string) {
	if d.OnConflict == ConflictAdopt && ReadsDevice(name) {
		r.reportf(namePath, "build the name from INSTANCE_NAME, INSTANCE.name or NODE, or remove "+annotationOnConflict,
			"the name depends on properties of the device, which would decide which existing object is adopted")
	}
}

// read sets the directive of one annotation, or reports its mistake.
func (r *directiveReader) read(d *Directives, key string, v any) {
	field := annotationsPath.with(Key(key))
	if !slices.Contains(directiveKeys, key) {
		r.reportf(field, directiveHint(key),
			"annotations under %s are directives, but %s is not a directive", reservedPrefix, fault.Quote(key, 63))
		return
	}
	written, isText := v.(string)
	switch {
	case !isText:
		r.reportf(field, "quote the value: annotations are strings", "a directive must be a string, not %s", decodedKind(v))
		return
	case written == "":
		r.reportf(field, "write a value, or remove the annotation", "the directive is empty")
		return
	}
	switch key {
	case annotationWhen:
		d.When = written
	case annotationForEach:
		d.ForEach = ForEach(written)
		r.binds = r.forEach(field, written)
	case annotationOnConflict:
		d.OnConflict = choice(r.reporter, field, string(renamed(OnConflict(written))), ConflictFail, ConflictAdopt, ConflictSkip)
	case annotationDeletionPolicy:
		d.DeletionPolicy = choice(r.reporter, field, written, DeletionDelete, DeletionOrphan)
	case annotationOnImmutable:
		d.OnImmutable = choice(r.reporter, field, written, ImmutableFail, ImmutableRecreate)
	case annotationReadyWhen:
		d.ReadyWhen = r.readyWhen(field, written)
	case annotationOnce:
		d.Once = choice(r.reporter, field, written, "true", "false") == "true"
	case annotationLegacyLabels:
		d.LegacyLabels = choice(r.reporter, field, written, "true", "false") == "true"
	}
}

// OnConflictOf returns the value of akri.sh/on-conflict in a template. It may be
// invalid.
func OnConflictOf(tmpl map[string]any) OnConflict {
	written, _ := annotationsPath.with(Key(annotationOnConflict)).Lookup(tmpl).(string)
	return renamed(OnConflict(written))
}

// renamed returns the value in place of its old name.
func renamed(written OnConflict) OnConflict {
	if written == conflictTake {
		return ConflictAdopt
	}
	return written
}

func directiveHint(key string) string {
	var words []string
	for _, directive := range directiveKeys {
		words = append(words, strings.TrimPrefix(directive, reservedPrefix))
	}
	if near := text.Nearest(strings.TrimPrefix(key, reservedPrefix), words); near != "" {
		return "did you mean " + reservedPrefix + near + "?"
	}
	return "directives are " + strings.Join(directiveKeys, ", ")
}

func choice[T ~string](r *reporter, field Path, written string, allowed ...T) T {
	if slices.Contains(allowed, T(written)) {
		return T(written)
	}
	words := make([]string, len(allowed))
	for i, word := range allowed {
		words[i] = string(word)
	}
	hint := "write one of " + strings.Join(words, ", ")
	if expr.Has(written) {
		hint += "; this directive takes no expression"
	}
	r.reportf(field, hint, "%s is not a value of this directive", fault.Quote(written, 63))
	return allowed[0]
}

func (r *directiveReader) forEach(field Path, written string) binding {
	level := r.origin.Level
	switch {
	case written == string(ForEachNode):
		return bindsNode
	case written == string(ForEachInstance) && level == ConfigurationLevel:
		return bindsInstance
	case written == string(ForEachInstance):
		r.reportf(field, "remove the annotation, or write NODES for one object per node",
			"templates in instanceBrokerResources are already rendered for each Instance")
	default:
		words := "NODES"
		if level == ConfigurationLevel {
			words += " or INSTANCES"
		}
		r.reportf(field, "write "+words+", without braces", "%s is not a list that for-each can use", fault.Quote(written, 63))
	}
	return bindsNothing
}

func (r *directiveReader) readyWhen(field Path, written string) *readywhen.Condition {
	const hint = "write CEL over self, the live object, as in self.status.phase == 'Running'"
	if expr.Has(written) {
		r.reportf(field, hint, "this directive takes no expression in braces")
		return nil
	}
	condition, err := readywhen.Compile(written)
	if err != nil {
		r.reportf(field, hint, "%w", err)
	}
	return condition
}
