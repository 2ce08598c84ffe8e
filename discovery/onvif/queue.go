package onvif

import (
	"container/heap"
	"time"
)

// queue is a priority queue of cameras, ordered by when they are due. A camera with a
// request under way is not in it.
type queue []*camera

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i]; q[i].place, q[j].place = i+1, j+1 }

// Push implements [heap.Interface].
func (q *queue) Push(item any) {
	c := item.(*camera)
	*q = append(*q, c)
	c.place = len(*q)
}

// Pop implements [heap.Interface].
func (q *queue) Pop() any {
	last := len(*q) - 1
	c := (*q)[last]
	(*q)[last], *q = nil, (*q)[:last]
	c.place = 0
	return c
}

// put adds a camera, or moves it.
func (q *queue) put(c *camera, due time.Time) {
	c.due = due
	if c.place > 0 {
		heap.Fix(q, c.place-1)
	} else {
		heap.Push(q, c)
	}
}

// drop removes a camera, if it is in the queue.
func (q *queue) drop(c *camera) {
	if c.place > 0 {
		heap.Remove(q, c.place-1)
	}
}

// next returns when the first camera is due; zero if there is none.
func (q queue) next() time.Time {
	if len(q) == 0 {
		return time.Time{}
	}
	return q[0].due
}
