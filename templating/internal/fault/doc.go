// Package fault describes a mistake in one text of a template: where it is, what
// is wrong and what to write instead. It also has the words that messages need:
// quoted text and the known name that the author probably meant.
//
// Never: the value of a device property in a message. Quote only what the author
// wrote.
package fault
