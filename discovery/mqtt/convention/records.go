package convention

import "reflect"

// Bounds of the state of one Configuration. They are far above what brokers hold, and keep
// a hostile one from using up the handler's memory.
const (
	// maxTopics bounds the number of topics with a record.
	maxTopics = 20_000
	// maxRecordBytes bounds what is remembered of an announcement.
	maxRecordBytes = 2048
	// maxTotalBytes bounds what is remembered in all records.
	maxTotalBytes = 24 << 20
)

// records keep the last message of each topic, reduced to what matters.
type records[R any] struct {
	byTopic map[string]*record[R]
	// bytes is the size of all texts, with the topics.
	bytes int
	// list counts the lists of retained messages.
	list int
}

type record[R any] struct {
	value R
	bytes int
	// list is the latest list that had a message of the topic.
	list int
}

func newRecords[R any]() records[R] { return records[R]{byTopic: map[string]*record[R]{}} }

// put stores a record with texts of this size.
func (r *records[R]) put(topic string, value R, bytes int) Effect {
	bytes += len(topic)
	former := r.byTopic[topic]
	more := bytes
	if former != nil {
		former.list = r.list
		if reflect.DeepEqual(former.value, value) {
			return Effect{}
		}
		more -= former.bytes
	}
	if former == nil && len(r.byTopic) >= maxTopics || r.bytes+more > maxTotalBytes {
		return Effect{Fault: FaultTooMany}
	}
	r.bytes += more
	r.byTopic[topic] = &record[R]{value, bytes, r.list}
	return Effect{Devices: true}
}

// remove removes a record.
func (r *records[R]) remove(topic string) Effect {
	former, found := r.byTopic[topic]
	if found {
		r.bytes -= former.bytes
		delete(r.byTopic, topic)
	}
	return Effect{Devices: found}
}

// begin begins a list of all retained messages.
func (r *records[R]) begin() { r.list++ }

// end removes the topics that the list did not have.
func (r *records[R]) end() {
	for topic, each := range r.byTopic {
		if each.list < r.list {
			r.remove(topic)
		}
	}
}
