// Package breakages breaks a cluster in one way after the other, and does what kubectl akri
// says about it.
//
// Each file in testdata is a breakage, as an operator would write it down:
//
//	# What happens, in one line.
//	given:                      a manifest; without it, a Deployment for one device
//	break:                      commands that break it
//	says: kubectl akri why X    a command, and parts of what it says, in this order;
//	                            what begins with "not: " it does not say
//	remedy:                     commands that it prints, and which are run as printed
//	do:                         what a person does who follows the text of a remedy
//	healthy: kubectl akri why X a command that shows that the object is healthy again, and what it says;
//	                            without it, why finds no problem of the Configuration
//	finally:                    commands that remove what else there is, whatever happened
//
// Text below a heading is indented. The steps run from top to bottom, in a namespace of
// their own, which is that of kubectl, in the root of the repository. $NAME is the name of
// the file and of the Configuration, $NAMESPACE that of the namespace, and $INSTANCE the
// only device of the Configuration, $DIR a directory for files, and $AKRI_DIR /var/lib/akri
// on node1. systemctl stops and starts a component of node1.
//
// Always: a conclusion is waited for, and only what a command prints is called its remedy.
// Never: a breakage that needs another one to have run before.
package breakages
