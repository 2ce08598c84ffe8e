package protocol

// RegistrationSocket is the name of the agent's registration socket in the
// directory of the discovery handlers.
const RegistrationSocket = "agent-registration.sock"
