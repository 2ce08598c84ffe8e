// Package fault describes a mistake in one text of a template: its
// position, its cause and what to write instead. It also formats parts of messages:
// quoted text, and the names that the author may have meant.
//
// Never: the value of a device property in a message. Quote only what the author
// wrote.
package fault
