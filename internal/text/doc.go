// Package text prepares text of other programs for people to read: it shortens it, and
// makes it one printable line. It also finds the name that a person may have meant.
package text
