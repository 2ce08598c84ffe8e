package convention

import "reflect"

// Bounds of the state of one Configuration. They are far above what brokers hold, and keep
// a hostile one from using up the handler's memory.
const (
	// maxTopics bounds the number of topics with a record.
	maxTopics = 100_000
	// maxRecordBytes bounds the memory of all records, roughly.
	maxRecordBytes = 16 << 20
	// recordOverhead is the memory of a record in addition to its texts, roughly, and
	// elementOverhead that of a text in a list.
	recordOverhead  = 96
	elementOverhead = 16
	// mapSpace is how many times its size a record takes of the map, which grows by doubling.
	mapSpace = 2
)

// records keep the last message of each topic, reduced to what matters.
type records[R any] struct {
	byTopic map[string]topicRecord[R]
	bytes   int
}

type topicRecord[R any] struct {
	value R
	size  int
}

func newRecords[R any]() records[R] { return records[R]{byTopic: map[string]topicRecord[R]{}} }

// put stores a record with texts of this size. It reports whether there is room.
func (r *records[R]) put(topic string, value R, size int) bool {
	former, found := r.byTopic[topic]
	size += len(topic) + recordOverhead
	if !found && len(r.byTopic) >= maxTopics || r.bytes-former.size+size > maxRecordBytes {
		return false
	}
	r.bytes += size - former.size
	r.byTopic[topic] = topicRecord[R]{value, size}
	return true
}

// memory returns the memory of all records, roughly.
func (r *records[R]) memory() int {
	entry := reflect.TypeFor[string]().Size() + reflect.TypeFor[topicRecord[R]]().Size()
	return r.bytes + len(r.byTopic)*mapSpace*int(entry)
}

// remove removes a record. It reports whether there was one.
func (r *records[R]) remove(topic string) bool {
	former, found := r.byTopic[topic]
	if found {
		r.bytes -= former.size
		delete(r.byTopic, topic)
	}
	return found
}

func (r *records[R]) get(topic string) (R, bool) {
	found, ok := r.byTopic[topic]
	return found.value, ok
}
