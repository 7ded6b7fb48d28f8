backend "http" {
  address        = "${var.states}/net"
  lock_address   = "${var.states}/net/lock"
  unlock_address = "${var.states}/net/lock"
  lock_method    = "POST"
  unlock_method  = "DELETE"
  username       = "gitlab-ci-token"
  password       = var.job_token
}
