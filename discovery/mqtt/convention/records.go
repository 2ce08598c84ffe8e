package convention

import (
	"maps"
	"reflect"
)

// Bounds of the state of one Configuration. They are far above what brokers hold, and keep
// a hostile one from using up the handler's memory.
const (
	// maxTopics bounds the number of topics with a record.
	maxTopics = 20_000
	// maxRecordBytes bounds the texts of a record.
	maxRecordBytes = 1024
)

// records keep the last message of each topic, reduced to what matters.
type records[R any] struct {
	byTopic map[string]*record[R]
	// list counts the lists of retained messages.
	list int
}

type record[R any] struct {
	value R
	// list is the latest list that had a message of the topic.
	list int
}

func newRecords[R any]() records[R] { return records[R]{byTopic: map[string]*record[R]{}} }

// put stores a record with texts of this size.
func (r *records[R]) put(topic string, value R, bytes int) Effect {
	former := r.byTopic[topic]
	switch {
	case bytes+len(topic) > maxRecordBytes:
		return Effect{Fault: FaultTooLarge}
	case former == nil && len(r.byTopic) >= maxTopics:
		return Effect{Fault: FaultTooMany}
	case former == nil:
		r.byTopic[topic] = &record[R]{value, r.list}
		return Effect{Devices: true}
	}
	former.list = r.list
	if reflect.DeepEqual(former.value, value) {
		return Effect{}
	}
	former.value = value
	return Effect{Devices: true}
}

// remove removes a record.
func (r *records[R]) remove(topic string) Effect {
	_, found := r.byTopic[topic]
	delete(r.byTopic, topic)
	return Effect{Devices: found}
}

// get returns a record, or the zero value.
func (r *records[R]) get(topic string) (value R, found bool) {
	if record := r.byTopic[topic]; record != nil {
		return record.value, true
	}
	return value, false
}

// begin begins a list of all retained messages.
func (r *records[R]) begin() { r.list++ }

// end removes the topics that the list did not have.
func (r *records[R]) end() {
	maps.DeleteFunc(r.byTopic, func(_ string, each *record[R]) bool { return each.list < r.list })
}
