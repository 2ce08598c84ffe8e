// Package scene draws the pictures of a virtual camera: a room with a moving ball, and
// the camera's name and the time as surveillance cameras print them. Each name has its
// own colors and its own movement.
//
// Always: the same name and time give the same picture.
// Never: a font, a file or a clock.
package scene
