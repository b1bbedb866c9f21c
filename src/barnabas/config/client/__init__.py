"""What producers, consumers and admin clients take; imported only by those who use them."""
