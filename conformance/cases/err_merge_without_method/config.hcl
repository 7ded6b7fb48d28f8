state {
  enforced = true
}
