"""The transaction coordinator: producer ids, transactions, and the markers that end them."""
